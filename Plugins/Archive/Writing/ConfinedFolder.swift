#if Archive
  import DownpipeCore
  import DownpipePOSIX

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// The folder that an archive is unpacked into. Everything is done relative to descriptors of its folders, and no link
  /// is followed.
  final class ConfinedFolder {
    let system: FileSystem
    private let root: OpenFile
    private let path: String
    /// The open folders from the root to that of the last entry: the next entry is mostly beside it.
    private var open: [(name: String, folder: OpenFile)] = []

    /// Opens an existing folder.
    init(_ path: String, system: FileSystem) throws {
      self.path = path
      self.system = system
      root = try reporting("open the folder", path) { () throws(SystemError) in
        try OpenFile(Entry(path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, system: system)
      }
    }

    /// Opens a folder, and creates those that are missing.
    func folder(_ components: some Collection<String>) throws -> OpenFile {
      var common = 0
      for (name, earlier) in zip(components, open) {
        // Bytes: two forms of one letter are two folders.
        guard name.utf8.elementsEqual(earlier.name.utf8) else { break }
        common += 1
      }
      open.removeLast(open.count - common)
      for name in components.dropFirst(common) {
        let parent = open.last?.folder ?? root
        let folder = try reporting("make the folder", self.path(components)) { () throws(SystemError) in
          let entry = Entry(name, in: parent.descriptor)
          do throws(SystemError) { try system.makeFolder(entry) } catch  where error.code == EEXIST {}
          return try OpenFile(entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, system: system)
        }
        open.append((name, folder))
      }
      return open.last?.folder ?? root
    }

    /// Creates a file; an earlier entry of that name must have been removed.
    ///
    /// - Parameter permissions: Those of the file, without what the umask takes.
    func makeFile(_ components: [String], permissions: UInt32) throws -> OpenFile {
      try withEntry(components, "create") { entry throws(SystemError) in
        try OpenFile(
          entry, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: .init(permissions), system: system)
      }
    }

    /// Opens an existing file for writing, also one that an earlier entry has made read-only.
    func openFile(_ components: [String]) throws -> OpenFile {
      try withEntry(components, "open") { entry throws(SystemError) in
        do throws(SystemError) {
          return try OpenFile(entry, O_WRONLY | O_NOFOLLOW | O_NONBLOCK, system: system)
        } catch {
          guard error.code == EACCES else { throw error }
        }
        let readable = try OpenFile(entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, system: system)
        let permissions = try readable.status().permissions
        try readable.setPermissions(permissions | 0o200)
        // What is open for writing stays so.
        defer { try? readable.setPermissions(permissions) }
        return try OpenFile(entry, O_WRONLY | O_NOFOLLOW | O_NONBLOCK, system: system)
      }
    }

    /// Gives a file a second name.
    func link(_ target: [String], to components: [String]) throws {
      guard let name = target.last else { return }
      let folder = try self.folder(target.dropLast())
      try withEntry(components, "link") { entry throws(SystemError) in
        try system.link(Entry(name, in: folder.descriptor), to: entry)
      }
    }

    func makeLink(_ components: [String], to target: String) throws {
      try withEntry(components, "make the link") { entry throws(SystemError) in
        try system.makeLink(entry, to: target.utf8.map { CChar(bitPattern: $0) } + [0])
      }
    }

    func unlink(_ components: [String]) throws {
      try withEntry(components, "replace") { entry throws(SystemError) in try system.unlink(entry) }
    }

    func path(_ components: some Collection<String>) -> String { path + "/" + components.joined(separator: "/") }

    private func withEntry<Value>(
      _ components: [String], _ action: String, _ body: (Entry) throws(SystemError) -> Value
    ) throws -> Value {
      guard let name = components.last else { throw DownloadError(.damaged, "an entry of the archive has no name") }
      let folder = try folder(components.dropLast())
      return try reporting(action, path(components)) { () throws(SystemError) in
        try body(Entry(name, in: folder.descriptor))
      }
    }
  }
#endif
