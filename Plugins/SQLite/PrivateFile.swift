#if SQLite
  import Foundation

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// Creates files that only the user may read, because a ledger stores header fields with passwords.
  enum PrivateFile {
    private static let mode: mode_t = 0o600

    /// Creates a folder that is private to the user, and its missing parents with the usual modes. An existing folder
    /// is not changed.
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

    /// Creates an empty private file before SQLite creates it; SQLite gives its log the same mode. An existing file is
    /// not changed. Errors are ignored, because SQLite reports them.
    static func make(_ path: String) {
      let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
      guard descriptor >= 0 else { return }
      // The process's file mode mask may have removed more permissions.
      fchmod(descriptor, mode)
      close(descriptor)
    }

    /// Makes an existing file of the user private.
    static func narrow(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0, status.st_uid == geteuid(), status.st_mode & 0o077 != 0 else { return }
      chmod(path, mode)
    }
  }
#endif
