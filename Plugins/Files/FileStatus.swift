import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What the file system knows of an entry.
struct FileStatus: Sendable {
  /// What an entry is.
  enum Kind: Sendable {
    case file, folder, link, other
  }

  let kind: Kind
  let device: UInt64
  let inode: UInt64
  let size: Int64
  let links: UInt64
  let permissions: mode_t
  /// The number of the user whose it is.
  let owner: uid_t
  /// The time of the last change of the bytes: seconds since 1970, and nanoseconds.
  let modified: (seconds: Int64, nanoseconds: Int64)

  init(_ raw: stat) {
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

  /// The time of the last change of the bytes.
  var modifiedAt: Date {
    Date(timeIntervalSince1970: Double(modified.seconds) + Double(modified.nanoseconds) / 1_000_000_000)
  }

  /// Whether both describe the same file or folder, perhaps under two names.
  func isSame(as other: FileStatus) -> Bool { inode == other.inode && device == other.device }
}
