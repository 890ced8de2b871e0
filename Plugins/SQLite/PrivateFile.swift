#if SQLite
  import Foundation

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// Files that only the user may read: a ledger holds header fields with passwords.
  enum PrivateFile {
    private static let mode: mode_t = 0o600

    /// Makes a folder for the user alone, and those above it as usual. One that is there stays as it is.
    static func makeFolder(_ path: String) throws {
      let parent = (path as NSString).deletingLastPathComponent
      if !parent.isEmpty {
        try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
      }
      if mkdir(path, 0o700) != 0, errno != EEXIST {
        throw CocoaError(.fileWriteUnknown, userInfo: [NSLocalizedDescriptionKey: String(cString: strerror(errno))])
      }
      var isDirectory: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue else {
        throw CocoaError(.fileWriteFileExists)
      }
    }

    /// Makes an empty file before SQLite would, with a mode of its own; SQLite gives its log the same. One that is
    /// there stays as it is, and whatever else is wrong SQLite will say.
    static func make(_ path: String) {
      let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
      guard descriptor >= 0 else { return }
      // The process may have been told to withhold more.
      fchmod(descriptor, mode)
      close(descriptor)
    }

    /// Takes a file of the user's away from others.
    static func narrow(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0, status.st_uid == geteuid(), status.st_mode & 0o077 != 0 else { return }
      chmod(path, mode)
    }
  }
#endif
