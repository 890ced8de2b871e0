// The types of Apple's C library as Swift imports them, from <sys/types.h>, <sys/stat.h>, <sys/mount.h>, <sys/dirent.h>,
// <sys/sysctl.h>, <sys/proc.h>, <sys/signal.h> and <sys/resource.h> of xnu. Structures have the fields that Downpipe uses. A module
// of their own, because some functions have the name of a type.
//
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation, TypeNamesShouldBeCapitalized, AlwaysUseLowerCamelCase, NoLeadingUnderscores, NeverUseImplicitlyUnwrappedOptionals

import Glibc

@_exported import struct Glibc.addrinfo
@_exported import struct Glibc.in6_addr
@_exported import struct Glibc.in_addr
@_exported import struct Glibc.pollfd
@_exported import struct Glibc.sockaddr
@_exported import struct Glibc.siginfo_t
@_exported import struct Glibc.sockaddr_in6

public typealias dev_t = Int32
public typealias gid_t = UInt32
public typealias id_t = UInt32
public typealias in_port_t = UInt16
public typealias ino_t = UInt64
public typealias mode_t = UInt16
public typealias nfds_t = UInt32
public typealias nlink_t = UInt16
public typealias off_t = Int64
public typealias pid_t = Int32
public typealias rlim_t = UInt64
public typealias sa_family_t = UInt8
public typealias sigset_t = UInt32
public typealias socklen_t = UInt32
public typealias ssize_t = Int
public typealias suseconds_t = Int32
public typealias time_t = Int
public typealias uid_t = UInt32

public struct timespec {
  public var tv_sec: time_t
  public var tv_nsec: Int

  public init() { self.init(tv_sec: 0, tv_nsec: 0) }
  public init(tv_sec: time_t, tv_nsec: Int) {
    self.tv_sec = tv_sec
    self.tv_nsec = tv_nsec
  }
}

public struct timeval {
  public var tv_sec: time_t
  public var tv_usec: suseconds_t

  public init() { self.init(tv_sec: 0, tv_usec: 0) }
  public init(tv_sec: time_t, tv_usec: suseconds_t) {
    self.tv_sec = tv_sec
    self.tv_usec = tv_usec
  }
}

public struct stat {
  public var st_dev: dev_t = 0
  public var st_mode: mode_t = 0
  public var st_nlink: nlink_t = 0
  public var st_ino: ino_t = 0
  public var st_uid: uid_t = 0
  public var st_gid: gid_t = 0
  public var st_mtimespec = timespec()
  public var st_size: off_t = 0
  public var st_blocks: Int64 = 0

  public init() {}
}

public struct statfs {
  public var f_bsize: UInt32 = 0
  public var f_iosize: Int32 = 0
  public var f_blocks: UInt64 = 0
  public var f_bfree: UInt64 = 0
  public var f_bavail: UInt64 = 0

  public init() {}
}

/// `d_name` has 1024 bytes there (`__DARWIN_MAXPATHLEN`); the names of a test fit in 256.
public struct dirent {
  public var d_ino: ino_t = 0
  public var d_namlen: UInt16 = 0
  public var d_type: UInt8 = 0
  public var d_name = InlineArray<256, CChar>(repeating: 0)

  public init() {}
}

/// A stream of a folder: `UnsafeMutablePointer<DIR>`, where Glibc has an opaque pointer.
public struct DIR {
  public var stream: OpaquePointer
  public var entry: UnsafeMutablePointer<dirent>

  public init(stream: OpaquePointer, entry: UnsafeMutablePointer<dirent>) {
    self.stream = stream
    self.entry = entry
  }
}

// MARK: Sockets

/// The family has one byte there, behind the length. This kernel gets two bytes of family.
public struct sockaddr_in {
  private var family: UInt16 = 0
  public var sin_port: in_port_t = 0
  public var sin_addr = in_addr()
  private var zero: UInt64 = 0

  public init() {}

  public var sin_len: UInt8 {
    get { 16 }
    set {}
  }
  public var sin_family: sa_family_t {
    get { sa_family_t(family) }
    set { family = UInt16(newValue) }
  }
}

// MARK: Processes

public struct clockid_t: RawRepresentable, Hashable, Sendable {
  public var rawValue: UInt32

  public init(_ rawValue: UInt32) { self.rawValue = rawValue }
  public init(rawValue: UInt32) { self.rawValue = rawValue }
}

public struct rlimit {
  public var rlim_cur: rlim_t
  public var rlim_max: rlim_t

  public init() { self.init(rlim_cur: 0, rlim_max: 0) }
  public init(rlim_cur: rlim_t, rlim_max: rlim_t) {
    self.rlim_cur = rlim_cur
    self.rlim_max = rlim_max
  }
}

/// <sys/sysctl.h>: what `KERN_PROC_PID` fills.
public struct kinfo_proc {
  public var kp_proc = extern_proc()

  public init() {}
}

/// <sys/proc.h>. `p_starttime` is a macro for `p_un.__p_starttime`, and Swift does not import such macros.
public struct extern_proc {
  public struct __Unnamed_union_p_un {
    public var __p_starttime = timeval()

    public init() {}
  }
  public var p_un = __Unnamed_union_p_un()
  public var p_stat: CChar = 0
  public var p_pid: pid_t = 0

  public init() {}
}

public struct __sigaction_u {
  public var __sa_handler: (@convention(c) (Int32) -> Void)!

  public init() {}
}

public struct sigaction {
  public var __sigaction_u = DarwinTypes.__sigaction_u()
  public var sa_mask: UInt32 = 0
  public var sa_flags: Int32 = 0

  public init() {}
}

// <sys/_pthread/_pthread_types.h>: a thread is a pointer.
public struct _opaque_pthread_t {}
public typealias pthread_t = UnsafeMutablePointer<_opaque_pthread_t>
public struct pthread_attr_t {
  public var size = 0

  public init() {}
}
public struct pthread_mutex_t {
  public var own = Glibc.pthread_mutex_t()

  public init() {}
}
public struct pthread_mutexattr_t {}

// <spawn.h>: objects behind pointers.
public typealias posix_spawn_file_actions_t = UnsafeMutableRawPointer
public typealias posix_spawnattr_t = UnsafeMutableRawPointer
