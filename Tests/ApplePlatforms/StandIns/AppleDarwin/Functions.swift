// Functions of Apple's C library with Apple's types, by those of Glibc.
//
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation, NeverUseImplicitlyUnwrappedOptionals, NoLeadingUnderscores

@_exported import DarwinTypes
import typealias DarwinTypes.dev_t
import typealias DarwinTypes.id_t
import typealias DarwinTypes.ino_t
import typealias DarwinTypes.mode_t
import typealias DarwinTypes.nfds_t
import typealias DarwinTypes.nlink_t
import typealias DarwinTypes.off_t
import typealias DarwinTypes.pid_t
import typealias DarwinTypes.posix_spawn_file_actions_t
import typealias DarwinTypes.posix_spawnattr_t
import typealias DarwinTypes.pthread_t
import typealias DarwinTypes.rlim_t
import typealias DarwinTypes.sigset_t
import typealias DarwinTypes.socklen_t
import struct DarwinTypes.DIR
import struct DarwinTypes.clockid_t
import struct DarwinTypes.dirent
import struct DarwinTypes.kinfo_proc
import struct DarwinTypes.pthread_attr_t
import struct DarwinTypes.pthread_mutex_t
import struct DarwinTypes.pthread_mutexattr_t
import struct DarwinTypes.rlimit
import struct DarwinTypes.sigaction
import struct DarwinTypes.stat
import struct DarwinTypes.statfs
import struct DarwinTypes.timespec
import struct DarwinTypes.timeval
import Glibc
import GlibcCalls
import Synchronization

// The same types on both.
@_exported import func Glibc._exit
@_exported import func Glibc.access
@_exported import func Glibc.close
@_exported import func Glibc.exit
@_exported import func Glibc.fchown
@_exported import func Glibc.free
@_exported import func Glibc.freeaddrinfo
@_exported import func Glibc.fsync
@_exported import func Glibc.gai_strerror
@_exported import func Glibc.getaddrinfo
@_exported import func Glibc.geteuid
@_exported import func Glibc.gethostname
@_exported import func Glibc.getpid
@_exported import func Glibc.inet_addr
@_exported import func Glibc.inet_ntop
@_exported import func Glibc.inet_pton
@_exported import func Glibc.kill
@_exported import func Glibc.linkat
@_exported import func Glibc.memcmp
@_exported import func Glibc.readlinkat
@_exported import func Glibc.realpath
@_exported import func Glibc.recv
@_exported import func Glibc.sched_yield
@_exported import func Glibc.shutdown
@_exported import func Glibc.strerror
@_exported import func Glibc.strdup
@_exported import func Glibc.strlen
@_exported import func Glibc.symlinkat
@_exported import func Glibc.unlinkat
@_exported import func Glibc.usleep

// MARK: Files

public func timingsafe_bcmp(_ first: UnsafeRawPointer!, _ second: UnsafeRawPointer!, _ count: Int) -> Int32 {
  Glibc.memcmp(first, second, count) == 0 ? 0 : 1
}

public func openat(_ folder: Int32, _ path: UnsafePointer<CChar>!, _ flags: Int32) -> Int32 {
  Glibc.openat(folder, path, flags)
}

public func openat(_ folder: Int32, _ path: UnsafePointer<CChar>!, _ flags: Int32, _ mode: mode_t) -> Int32 {
  Glibc.openat(folder, path, flags, Glibc.mode_t(mode))
}

public func renameat(_ old: Int32, _ from: UnsafePointer<CChar>!, _ new: Int32, _ to: UnsafePointer<CChar>!) -> Int32 {
  Glibc.renameat(old, from, new, to)
}

public func mkdirat(_ folder: Int32, _ path: UnsafePointer<CChar>!, _ mode: mode_t) -> Int32 {
  Glibc.mkdirat(folder, path, Glibc.mode_t(mode))
}

public func pwrite(_ file: Int32, _ bytes: UnsafeRawPointer!, _ count: Int, _ offset: off_t) -> Int {
  Glibc.pwrite(file, bytes, count, Glibc.off_t(offset))
}

public func pread(_ file: Int32, _ bytes: UnsafeMutableRawPointer!, _ count: Int, _ offset: off_t) -> Int {
  Glibc.pread(file, bytes, count, Glibc.off_t(offset))
}

public func ftruncate(_ file: Int32, _ size: off_t) -> Int32 { Glibc.ftruncate(file, Glibc.off_t(size)) }

public func fchmod(_ file: Int32, _ mode: mode_t) -> Int32 { Glibc.fchmod(file, Glibc.mode_t(mode)) }

public func flock(_ file: Int32, _ operation: Int32) -> Int32 { lockFile(file, operation) }

/// What `F_FULLFSYNC` answers; 0, or the code of an error, for tests.
public let fullSync = Atomic<Int32>(0)

public func fcntl(_ file: Int32, _ command: Int32) -> Int32 {
  guard command == F_FULLFSYNC else { return Glibc.fcntl(file, command) }
  let code = fullSync.load(ordering: .relaxed)
  guard code != 0 else { return Glibc.fsync(file) }
  Glibc.errno = code
  return -1
}

public func fcntl(_ file: Int32, _ command: Int32, _ value: Int32) -> Int32 { Glibc.fcntl(file, command, value) }

public func fstat(_ file: Int32, _ result: UnsafeMutablePointer<stat>!) -> Int32 {
  var raw = Glibc.stat()
  let code = Glibc.fstat(file, &raw)
  if code == 0 { result.pointee = stat(raw) }
  return code
}

public func fstatat(
  _ folder: Int32, _ path: UnsafePointer<CChar>!, _ result: UnsafeMutablePointer<stat>!, _ flags: Int32
) -> Int32 {
  var raw = Glibc.stat()
  let code = Glibc.fstatat(folder, path, &raw, flags)
  if code == 0 { result.pointee = stat(raw) }
  return code
}

extension stat {
  fileprivate init(_ raw: Glibc.stat) {
    self.init()
    st_dev = dev_t(truncatingIfNeeded: raw.st_dev)
    st_mode = mode_t(truncatingIfNeeded: raw.st_mode)
    st_nlink = nlink_t(truncatingIfNeeded: raw.st_nlink)
    st_ino = ino_t(raw.st_ino)
    st_uid = raw.st_uid
    st_gid = raw.st_gid
    st_mtimespec = timespec(tv_sec: raw.st_mtim.tv_sec, tv_nsec: raw.st_mtim.tv_nsec)
    st_size = off_t(raw.st_size)
    st_blocks = Int64(raw.st_blocks)
  }
}

public func utimensat(
  _ folder: Int32, _ path: UnsafePointer<CChar>!, _ times: UnsafePointer<timespec>!, _ flags: Int32
) -> Int32 {
  guard let times else { return Glibc.utimensat(folder, path, nil, flags) }
  return Glibc.utimensat(folder, path, raw(times), flags)
}

public func futimens(_ file: Int32, _ times: UnsafePointer<timespec>!) -> Int32 {
  guard let times else { return Glibc.futimens(file, nil) }
  return Glibc.futimens(file, raw(times))
}

private func raw(_ times: UnsafePointer<timespec>) -> [Glibc.timespec] {
  [times[0], times[1]].map { Glibc.timespec(tv_sec: $0.tv_sec, tv_nsec: $0.tv_nsec) }
}

public func statfs(_ path: UnsafePointer<CChar>!, _ result: UnsafeMutablePointer<statfs>!) -> Int32 {
  var raw = Glibc.statvfs()
  let code = status(ofFileSystem: path, &raw)
  guard code == 0 else { return code }
  result.pointee = statfs()
  result.pointee.f_bsize = UInt32(truncatingIfNeeded: raw.f_frsize)
  result.pointee.f_blocks = UInt64(raw.f_blocks)
  result.pointee.f_bfree = UInt64(raw.f_bfree)
  result.pointee.f_bavail = UInt64(raw.f_bavail)
  return 0
}

// MARK: Folders

public func fdopendir(_ folder: Int32) -> UnsafeMutablePointer<DIR>! {
  guard let stream = Glibc.fdopendir(folder) else { return nil }
  let pointer = UnsafeMutablePointer<DIR>.allocate(capacity: 1)
  let entry = UnsafeMutablePointer<dirent>.allocate(capacity: 1)
  entry.initialize(to: dirent())
  pointer.initialize(to: DIR(stream: stream, entry: entry))
  return pointer
}

public func readdir(_ folder: UnsafeMutablePointer<DIR>!) -> UnsafeMutablePointer<dirent>! {
  guard let raw = Glibc.readdir(folder.pointee.stream) else { return nil }
  var entry = dirent()
  entry.d_ino = ino_t(raw.pointee.d_ino)
  entry.d_type = raw.pointee.d_type
  withUnsafeBytes(of: &raw.pointee.d_name) { bytes in
    for index in 0..<min(bytes.count, entry.d_name.count) { entry.d_name[index] = CChar(bitPattern: bytes[index]) }
  }
  folder.pointee.entry.pointee = entry
  return folder.pointee.entry
}

@discardableResult
public func closedir(_ folder: UnsafeMutablePointer<DIR>!) -> Int32 {
  let (stream, entry) = (folder.pointee.stream, folder.pointee.entry)
  entry.deallocate()
  folder.deallocate()
  return Glibc.closedir(stream)
}

// MARK: Sockets

public func socket(_ family: Int32, _ type: Int32, _ number: Int32) -> Int32 { Glibc.socket(family, type, number) }

public func connect(_ socket: Int32, _ address: UnsafePointer<sockaddr>!, _ length: socklen_t) -> Int32 {
  Glibc.connect(socket, address, length)
}

public func poll(_ entries: UnsafeMutablePointer<pollfd>!, _ count: nfds_t, _ timeout: Int32) -> Int32 {
  Glibc.poll(entries, Glibc.nfds_t(count), timeout)
}

public func getsockopt(
  _ socket: Int32, _ level: Int32, _ option: Int32, _ value: UnsafeMutableRawPointer!,
  _ length: UnsafeMutablePointer<socklen_t>!
) -> Int32 {
  Glibc.getsockopt(socket, level, option, value, length)
}

// MARK: Processes

@discardableResult
public func clock_gettime(_ clock: clockid_t, _ time: UnsafeMutablePointer<timespec>!) -> Int32 {
  var raw = Glibc.timespec()
  let code = Glibc.clock_gettime(Glibc.CLOCK_MONOTONIC, &raw)
  time.pointee = timespec(tv_sec: raw.tv_sec, tv_nsec: raw.tv_nsec)
  return code
}

/// What the kernel of a Mac would know: values of `sysctlbyname`, and start times of processes.
public struct Kernel: Sendable {
  public var texts: [String: String] = [:]
  public var starts: [pid_t: (seconds: Int, microseconds: Int32)] = [:]

  public static let current = Mutex(Kernel())
}

public func sysctlbyname(
  _ name: UnsafePointer<CChar>!, _ old: UnsafeMutableRawPointer!, _ oldLength: UnsafeMutablePointer<Int>!,
  _ new: UnsafeMutableRawPointer!, _ newLength: Int
) -> Int32 {
  guard let text = Kernel.current.withLock({ $0.texts[String(cString: name)] }) else {
    Glibc.errno = Glibc.ENOENT
    return -1
  }
  let bytes = Array(text.utf8) + [0]
  guard let old else {
    oldLength.pointee = bytes.count
    return 0
  }
  let count = min(oldLength.pointee, bytes.count)
  bytes.withUnsafeBytes { old.copyMemory(from: $0.baseAddress!, byteCount: count) }
  oldLength.pointee = count
  guard count == bytes.count else {
    Glibc.errno = Glibc.ENOMEM
    return -1
  }
  return 0
}

/// For a process that does not exist it succeeds, with a length of 0.
public func sysctl(
  _ name: UnsafeMutablePointer<Int32>!, _ nameLength: UInt32, _ old: UnsafeMutableRawPointer!,
  _ oldLength: UnsafeMutablePointer<Int>!, _ new: UnsafeMutableRawPointer!, _ newLength: Int
) -> Int32 {
  guard nameLength == 4, name[0] == CTL_KERN, name[1] == KERN_PROC, name[2] == KERN_PROC_PID,
    oldLength.pointee >= MemoryLayout<kinfo_proc>.stride
  else {
    Glibc.errno = Glibc.EINVAL
    return -1
  }
  guard let start = Kernel.current.withLock({ $0.starts[name[3]] }) else {
    oldLength.pointee = 0
    return 0
  }
  var info = kinfo_proc()
  info.kp_proc.p_pid = name[3]
  info.kp_proc.p_un.__p_starttime = timeval(tv_sec: start.seconds, tv_usec: start.microseconds)
  old.storeBytes(of: info, as: kinfo_proc.self)
  oldLength.pointee = MemoryLayout<kinfo_proc>.stride
  return 0
}

public func getrlimit(_ resource: Int32, _ limit: UnsafeMutablePointer<rlimit>!) -> Int32 {
  var raw = Glibc.rlimit()
  let code = limitOfDescriptors(&raw)
  limit.pointee = rlimit(rlim_cur: rlim_t(raw.rlim_cur), rlim_max: rlim_t(raw.rlim_max))
  return code
}

/// Changes nothing: this process needs its limit.
public func setrlimit(_ resource: Int32, _ limit: UnsafePointer<rlimit>!) -> Int32 { 0 }

public func sigaction(
  _ number: Int32, _ new: UnsafePointer<sigaction>!, _ old: UnsafeMutablePointer<sigaction>!
) -> Int32 {
  var raw = Glibc.sigaction()
  let code = action(of: number, &raw)
  old?.pointee.__sigaction_u.__sa_handler = raw.__sigaction_handler.sa_handler
  return code
}

public let SIG_IGN: (@convention(c) (Int32) -> Void)! = Glibc.SIG_IGN

@discardableResult
public func signal(
  _ number: Int32, _ handler: (@convention(c) (Int32) -> Void)!
) -> (@convention(c) (Int32) -> Void)! {
  Glibc.signal(number, handler)
}

@discardableResult
public func sigemptyset(_ set: UnsafeMutablePointer<sigset_t>!) -> Int32 {
  set.pointee = 0
  return 0
}

@discardableResult
public func sigaddset(_ set: UnsafeMutablePointer<sigset_t>!, _ number: Int32) -> Int32 {
  set.pointee |= 1 << UInt32(number - 1)
  return 0
}

@discardableResult
public func pthread_sigmask(
  _ how: Int32, _ set: UnsafePointer<sigset_t>!, _ old: UnsafeMutablePointer<sigset_t>!
) -> Int32 {
  var raw = rawSet(set.pointee)
  return Glibc.pthread_sigmask(how, &raw, nil)
}

// MARK: <pthread.h>

public func pthread_create(
  _ thread: UnsafeMutablePointer<DarwinTypes.pthread_t?>, _ attributes: UnsafePointer<DarwinTypes.pthread_attr_t>?,
  _ body: @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?
) -> Int32 {
  var own = Glibc.pthread_t()
  let start = unsafeBitCast(body, to: (@convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?).self)
  let code = Glibc.pthread_create(&own, nil, start, context)
  thread.pointee = DarwinTypes.pthread_t(bitPattern: UInt(own))
  return code
}

@discardableResult
public func pthread_detach(_ thread: DarwinTypes.pthread_t) -> Int32 {
  Glibc.pthread_detach(Glibc.pthread_t(UInt(bitPattern: thread)))
}

@discardableResult
public func pthread_join(
  _ thread: DarwinTypes.pthread_t, _ result: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> Int32 {
  Glibc.pthread_join(Glibc.pthread_t(UInt(bitPattern: thread)), result)
}

/// A thread has a stack of 512 KiB there.
@discardableResult
public func pthread_attr_init(_ attributes: UnsafeMutablePointer<DarwinTypes.pthread_attr_t>) -> Int32 {
  attributes.initialize(to: DarwinTypes.pthread_attr_t())
  attributes.pointee.size = 512 << 10
  return 0
}

@discardableResult
public func pthread_attr_destroy(_ attributes: UnsafeMutablePointer<DarwinTypes.pthread_attr_t>) -> Int32 { 0 }

@discardableResult
public func pthread_attr_setstacksize(
  _ attributes: UnsafeMutablePointer<DarwinTypes.pthread_attr_t>, _ size: Int
) -> Int32 {
  attributes.pointee.size = size
  return 0
}

@discardableResult
public func pthread_attr_getstacksize(
  _ attributes: UnsafePointer<DarwinTypes.pthread_attr_t>, _ size: UnsafeMutablePointer<Int>
) -> Int32 {
  size.pointee = attributes.pointee.size
  return 0
}

@discardableResult
public func pthread_mutex_init(
  _ mutex: UnsafeMutablePointer<DarwinTypes.pthread_mutex_t>,
  _ attributes: UnsafePointer<DarwinTypes.pthread_mutexattr_t>?
) -> Int32 {
  mutex.initialize(to: DarwinTypes.pthread_mutex_t())
  return Glibc.pthread_mutex_init(own(mutex), nil)
}

@discardableResult
public func pthread_mutex_lock(_ mutex: UnsafeMutablePointer<DarwinTypes.pthread_mutex_t>) -> Int32 {
  Glibc.pthread_mutex_lock(own(mutex))
}

@discardableResult
public func pthread_mutex_unlock(_ mutex: UnsafeMutablePointer<DarwinTypes.pthread_mutex_t>) -> Int32 {
  Glibc.pthread_mutex_unlock(own(mutex))
}

@discardableResult
public func pthread_mutex_destroy(_ mutex: UnsafeMutablePointer<DarwinTypes.pthread_mutex_t>) -> Int32 {
  Glibc.pthread_mutex_destroy(own(mutex))
}

/// The structure has this one field.
private func own(
  _ mutex: UnsafeMutablePointer<DarwinTypes.pthread_mutex_t>
) -> UnsafeMutablePointer<Glibc.pthread_mutex_t> {
  UnsafeMutableRawPointer(mutex).assumingMemoryBound(to: Glibc.pthread_mutex_t.self)
}

// MARK: <sys/mman.h>

public func mmap(
  _ address: UnsafeMutableRawPointer!, _ size: Int, _ protection: Int32, _ flags: Int32, _ file: Int32, _ offset: off_t
) -> UnsafeMutableRawPointer! {
  Glibc.mmap(address, size, protection, flags, file, Glibc.off_t(offset))
}

@discardableResult
public func munmap(_ address: UnsafeMutableRawPointer!, _ size: Int) -> Int32 { Glibc.munmap(address, size) }

// MARK: Sockets that listen

public func bind(_ socket: Int32, _ address: UnsafePointer<sockaddr>!, _ length: socklen_t) -> Int32 {
  Glibc.bind(socket, address, length)
}

public func getsockname(
  _ socket: Int32, _ address: UnsafeMutablePointer<sockaddr>!, _ length: UnsafeMutablePointer<socklen_t>!
) -> Int32 {
  Glibc.getsockname(socket, address, length)
}

// MARK: <spawn.h>, <sys/wait.h>

@discardableResult
public func posix_spawn_file_actions_init(_ actions: UnsafeMutablePointer<posix_spawn_file_actions_t?>!) -> Int32 {
  let own = UnsafeMutablePointer<Glibc.posix_spawn_file_actions_t>.allocate(capacity: 1)
  actions.pointee = UnsafeMutableRawPointer(own)
  return Glibc.posix_spawn_file_actions_init(own)
}

@discardableResult
public func posix_spawn_file_actions_destroy(_ actions: UnsafeMutablePointer<posix_spawn_file_actions_t?>!) -> Int32 {
  let own = own(actions)
  defer { own.deallocate() }
  return Glibc.posix_spawn_file_actions_destroy(own)
}

@discardableResult
public func posix_spawn_file_actions_addopen(
  _ actions: UnsafeMutablePointer<posix_spawn_file_actions_t?>!, _ file: Int32, _ path: UnsafePointer<CChar>!,
  _ flags: Int32, _ mode: mode_t
) -> Int32 {
  Glibc.posix_spawn_file_actions_addopen(own(actions), file, path, flags, Glibc.mode_t(mode))
}

private func own(
  _ actions: UnsafePointer<posix_spawn_file_actions_t?>
) -> UnsafeMutablePointer<Glibc.posix_spawn_file_actions_t> {
  actions.pointee!.assumingMemoryBound(to: Glibc.posix_spawn_file_actions_t.self)
}

@discardableResult
public func posix_spawnattr_init(_ attributes: UnsafeMutablePointer<posix_spawnattr_t?>!) -> Int32 {
  let own = UnsafeMutablePointer<Glibc.posix_spawnattr_t>.allocate(capacity: 1)
  attributes.pointee = UnsafeMutableRawPointer(own)
  return Glibc.posix_spawnattr_init(own)
}

@discardableResult
public func posix_spawnattr_destroy(_ attributes: UnsafeMutablePointer<posix_spawnattr_t?>!) -> Int32 {
  let own = own(of: attributes)
  defer { own.deallocate() }
  return Glibc.posix_spawnattr_destroy(own)
}

@discardableResult
public func posix_spawnattr_setflags(_ attributes: UnsafeMutablePointer<posix_spawnattr_t?>!, _ flags: Int16) -> Int32 {
  Glibc.posix_spawnattr_setflags(own(of: attributes), flags & ~Int16(POSIX_SPAWN_CLOEXEC_DEFAULT))
}

@discardableResult
public func posix_spawnattr_setsigmask(
  _ attributes: UnsafeMutablePointer<posix_spawnattr_t?>!, _ set: UnsafePointer<sigset_t>!
) -> Int32 {
  var raw = rawSet(set.pointee)
  return Glibc.posix_spawnattr_setsigmask(own(of: attributes), &raw)
}

@discardableResult
public func posix_spawnattr_setsigdefault(
  _ attributes: UnsafeMutablePointer<posix_spawnattr_t?>!, _ set: UnsafePointer<sigset_t>!
) -> Int32 {
  var raw = rawSet(set.pointee)
  return Glibc.posix_spawnattr_setsigdefault(own(of: attributes), &raw)
}

private func own(
  of attributes: UnsafePointer<posix_spawnattr_t?>
) -> UnsafeMutablePointer<Glibc.posix_spawnattr_t> {
  attributes.pointee!.assumingMemoryBound(to: Glibc.posix_spawnattr_t.self)
}

private func rawSet(_ set: sigset_t) -> Glibc.sigset_t {
  var raw = Glibc.sigset_t()
  Glibc.sigemptyset(&raw)
  for number in Int32(1)...31 where set & (1 << UInt32(number - 1)) != 0 { Glibc.sigaddset(&raw, number) }
  return raw
}

public func posix_spawn(
  _ id: UnsafeMutablePointer<pid_t>!, _ path: UnsafePointer<CChar>!,
  _ actions: UnsafePointer<posix_spawn_file_actions_t?>!, _ attributes: UnsafePointer<posix_spawnattr_t?>!,
  _ arguments: UnsafePointer<UnsafeMutablePointer<CChar>?>!, _ variables: UnsafePointer<UnsafeMutablePointer<CChar>?>!
) -> Int32 {
  Glibc.posix_spawn(id, path, own(actions), own(of: attributes), arguments, variables)
}

public func waitid(
  _ kind: idtype_t, _ id: id_t, _ info: UnsafeMutablePointer<siginfo_t>!, _ options: Int32
) -> Int32 {
  Glibc.waitid(kind, Glibc.id_t(id), info, options)
}

public func waitpid(_ id: pid_t, _ status: UnsafeMutablePointer<Int32>!, _ options: Int32) -> pid_t {
  Glibc.waitpid(id, status, options)
}
