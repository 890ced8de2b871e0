package import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What stat(2) returns for an entry.
package struct FileStatus: Sendable {
  package enum Kind: Sendable {
    case file, folder, link, other
  }

  package let kind: Kind
  package let device: UInt64
  package let inode: UInt64
  package let size: Int64
  package let links: UInt64
  package let permissions: mode_t
  /// The user id of the owner.
  package let owner: uid_t
  /// When the bytes last changed: seconds since 1970, and nanoseconds.
  package let modified: (seconds: Int64, nanoseconds: Int64)

  package init(_ raw: stat) {
    kind =
      switch raw.st_mode & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .folder
      case S_IFLNK: .link
      default: .other
      }
    device = UInt64(truncatingIfNeeded: raw.st_dev)
    inode = UInt64(truncatingIfNeeded: raw.st_ino)
    size = Int64(raw.st_size)
    links = UInt64(raw.st_nlink)
    permissions = raw.st_mode & 0o777
    owner = raw.st_uid
    #if canImport(Darwin)
      modified = (Int64(raw.st_mtimespec.tv_sec), Int64(raw.st_mtimespec.tv_nsec))
    #else
      modified = (Int64(raw.st_mtim.tv_sec), Int64(raw.st_mtim.tv_nsec))
    #endif
  }

  /// When the bytes last changed.
  package var modifiedAt: Date {
    Date(timeIntervalSince1970: Double(modified.seconds) + Double(modified.nanoseconds) / 1_000_000_000)
  }

  /// Whether both are the same file or folder, which may have two names.
  package func isSame(as other: FileStatus) -> Bool { inode == other.inode && device == other.device }
}
