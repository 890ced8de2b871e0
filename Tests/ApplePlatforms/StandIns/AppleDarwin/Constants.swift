// Constants of Apple's C library with Apple's types. Their values are those of this machine, because its kernel gets them.
//
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation, AlwaysUseLowerCamelCase

import DarwinTypes
@_exported import var Glibc.errno

@_exported import var Glibc.E2BIG
@_exported import var Glibc.EACCES
@_exported import var Glibc.EAGAIN
@_exported import var Glibc.EBADF
@_exported import var Glibc.ECONNREFUSED
@_exported import var Glibc.EDQUOT
@_exported import var Glibc.EEXIST
@_exported import var Glibc.EFBIG
@_exported import var Glibc.EINPROGRESS
@_exported import var Glibc.EINTR
@_exported import var Glibc.EINVAL
@_exported import var Glibc.EIO
@_exported import var Glibc.EISDIR
@_exported import var Glibc.ELOOP
@_exported import var Glibc.EMFILE
@_exported import var Glibc.EMLINK
@_exported import var Glibc.ENAMETOOLONG
@_exported import var Glibc.ENETDOWN
@_exported import var Glibc.ENETUNREACH
@_exported import var Glibc.ENFILE
@_exported import var Glibc.ENOENT
@_exported import var Glibc.ENOSPC
@_exported import var Glibc.ENOSYS
@_exported import var Glibc.ENOTDIR
@_exported import var Glibc.ENOTEMPTY
@_exported import var Glibc.ENOTSUP
@_exported import var Glibc.ENOTTY
@_exported import var Glibc.EOPNOTSUPP
@_exported import var Glibc.EPERM
@_exported import var Glibc.ERANGE
@_exported import var Glibc.EROFS
@_exported import var Glibc.ESRCH
@_exported import var Glibc.ESTALE
@_exported import var Glibc.ETIMEDOUT
@_exported import var Glibc.EWOULDBLOCK
@_exported import var Glibc.EXDEV

// <fcntl.h>, <unistd.h>
@_exported import var Glibc.AT_FDCWD
@_exported import var Glibc.AT_REMOVEDIR
@_exported import var Glibc.AT_SYMLINK_FOLLOW
@_exported import var Glibc.AT_SYMLINK_NOFOLLOW
@_exported import var Glibc.FD_CLOEXEC
@_exported import var Glibc.F_DUPFD_CLOEXEC
@_exported import var Glibc.F_GETFD
@_exported import var Glibc.F_GETFL
@_exported import var Glibc.F_SETFD
@_exported import var Glibc.F_SETFL
@_exported import var Glibc.LOCK_EX
@_exported import var Glibc.LOCK_NB
@_exported import var Glibc.O_CLOEXEC
@_exported import var Glibc.O_CREAT
@_exported import var Glibc.O_DIRECTORY
@_exported import var Glibc.O_EXCL
@_exported import var Glibc.O_NOFOLLOW
@_exported import var Glibc.O_NONBLOCK
@_exported import var Glibc.O_RDONLY
@_exported import var Glibc.O_RDWR
@_exported import var Glibc.O_TRUNC
@_exported import var Glibc.O_WRONLY
@_exported import var Glibc.PATH_MAX
@_exported import var Glibc.X_OK

/// The value on Apple's systems, which no kernel gets: ``fcntl(_:_:)`` answers it.
public let F_FULLFSYNC: Int32 = 51

public let S_IFMT: mode_t = 0o170000
public let S_IFREG: mode_t = 0o100000
public let S_IFDIR: mode_t = 0o040000
public let S_IFLNK: mode_t = 0o120000

// <sys/socket.h>, <poll.h>
@_exported import var Glibc.AF_INET
@_exported import var Glibc.AF_INET6
@_exported import var Glibc.AF_UNSPEC
@_exported import var Glibc.INET6_ADDRSTRLEN
@_exported import var Glibc.POLLOUT
@_exported import var Glibc.SOL_SOCKET
@_exported import var Glibc.SO_ERROR

public let MSG_PEEK: Int32 = 0x2
public let MSG_DONTWAIT: Int32 = 0x40

/// An `Int32` there, and an enumeration in Glibc.
public let SHUT_RD: Int32 = 0
// Of Glibc, whose getaddrinfo is called.
public let EAI_AGAIN: Int32 = -3
public let SOCK_STREAM: Int32 = 1

// <time.h>, <sys/sysctl.h>, <sys/signal.h>, <sys/resource.h>, <sys/syslimits.h>
public let CLOCK_MONOTONIC = clockid_t(6)
public let CTL_KERN: Int32 = 1
public let KERN_PROC: Int32 = 14
public let KERN_PROC_PID: Int32 = 1
public let OPEN_MAX: Int32 = 10240
public let RLIMIT_AS: Int32 = 5
public let RLIMIT_NOFILE: Int32 = 8
@_exported import var Glibc.SIG_BLOCK
@_exported import var Glibc.SIGCHLD
@_exported import var Glibc.SIGHUP
@_exported import var Glibc.SIGINT
@_exported import var Glibc.SIGKILL
@_exported import var Glibc.SIGPIPE
@_exported import var Glibc.SIGTERM

// <sys/mman.h>
public let MAP_ANON: Int32 = 0x20
@_exported import var Glibc.MAP_PRIVATE
@_exported import var Glibc.PROT_NONE
/// A macro that Swift imports as a pointer there, too.
public var MAP_FAILED: UnsafeMutableRawPointer? { UnsafeMutableRawPointer(bitPattern: -1) }

// <spawn.h>, <sys/wait.h>: the flags of posix_spawn are `Int32` there.
public let POSIX_SPAWN_SETSIGDEF: Int32 = 0x04
public let POSIX_SPAWN_SETSIGMASK: Int32 = 0x08
/// Only Apple's kernel knows it: ``posix_spawnattr_setflags(_:_:)`` takes it away.
public let POSIX_SPAWN_CLOEXEC_DEFAULT: Int32 = 0x4000
@_exported import var Glibc.P_PID
@_exported import var Glibc.WEXITED
@_exported import var Glibc.WNOWAIT
