#if SQLite
  import DownpipeCore
  import DownpipePOSIX

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
      let parent = PathText.split(path).folder
      try OpenFolder.makeFolders(parent, durability: .process, system: .system)
      try OpenFolder.makeFolders(path, privateBelow: parent, durability: .process, system: .system)
    }

    /// Creates an empty private file before SQLite creates it; SQLite gives its log the same mode. An existing file is
    /// not changed. Errors are ignored, because SQLite reports them.
    static func make(_ path: String) {
      guard let file = try? OpenFile(Entry(path), O_WRONLY | O_CREAT | O_EXCL, mode: mode) else { return }
      // The process's file mode mask may have removed more permissions.
      try? file.system.setPermissions(file.descriptor, mode)
      try? file.close()
    }

    /// Makes an existing file of the user private.
    static func narrow(_ path: String) {
      guard let status = try? FileSystem.system.status(Entry(path), following: true), status.owner == geteuid(),
        status.permissions & 0o077 != 0
      else { return }
      chmod(path, mode)
    }
  }
#endif
