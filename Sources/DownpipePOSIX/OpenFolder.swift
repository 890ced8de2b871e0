package import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// An open folder. Its entries stay reachable when the folder is renamed or its path leads elsewhere.
///
/// It closes its descriptor when the last reference is released.
package final class OpenFolder: Sendable {
  package let descriptor: CInt
  /// The absolute path at the time of opening.
  package let path: String
  package let system: FileSystem

  private init(taking descriptor: CInt, path: String, system: FileSystem) {
    self.descriptor = descriptor
    self.path = path
    self.system = system
  }

  deinit { try? system.close(descriptor) }

  /// Opens the folder at an absolute path, following symbolic links.
  package convenience init(_ path: String, system: FileSystem) throws(SystemError) {
    let descriptor = try system.open(Entry(path), O_RDONLY | O_DIRECTORY)
    self.init(taking: descriptor, path: path, system: system)
  }

  /// Opens a folder in this one; fails for a symbolic link.
  package func open(_ entry: Entry) throws(SystemError) -> OpenFolder {
    let descriptor = try system.open(entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    return OpenFolder(taking: descriptor, path: PathText.join(path, entry.name), system: system)
  }

  package func entry(_ name: String) -> Entry { Entry(name, in: descriptor) }

  /// Whether the path leads to another folder, or to none, since the folder was opened.
  package var isGone: Bool {
    guard let now = try? system.statusIfPresent(Entry(path), following: true), let mine = try? system.status(descriptor)
    else { return true }
    return !now.isSame(as: mine)
  }

  /// With `.power`, flushes the folder's entries to the disk.
  package func flush(_ durability: Durability) throws(SystemError) {
    if durability == .power { try system.flushFolder(descriptor) }
  }

  /// With `.power`, flushes the folder that contains a path; does nothing if it no longer exists.
  package static func flush(above path: String, _ durability: Durability, system: FileSystem) throws(SystemError) {
    guard durability == .power else { return }
    do {
      try OpenFolder(PathText.split(path).folder, system: system).flush(durability)
    } catch {
      if error.code != ENOENT { throw error }
    }
  }

  /// Opens a folder below a root, one component after the other. Symbolic links below the root are refused: another
  /// user who can write there could point one anywhere.
  ///
  /// - Parameter creating: Whether missing folders are created; otherwise the result is `nil` when one is missing.
  /// - Throws: `DownloadError` with `.unsafePath` for a symbolic link, `.permission` where a file has the name of a
  ///   folder, and the other codes of ``SystemError``.
  package static func open(
    root: String, components: [String], creating: Bool, durability: Durability, system: FileSystem
  ) throws -> OpenFolder? {
    var folder: OpenFolder
    do {
      folder = try OpenFolder(root, system: system)
    } catch {
      guard error.code == ENOENT else { throw error.downloadError("open the folder", root) }
      guard creating else { return nil }
      try makeFolders(root, durability: durability, system: system)
      folder = try reporting("open the folder", root) { () throws(SystemError) in
        try OpenFolder(root, system: system)
      }
    }
    for component in components {
      guard let next = try folder.step(into: component, creating: creating, durability: durability) else { return nil }
      folder = next
    }
    return folder
  }

  private func step(into name: String, creating: Bool, durability: Durability) throws -> OpenFolder? {
    let path = PathText.join(self.path, name)
    do {
      return try open(entry(name))
    } catch {
      switch error.code {
      case ENOENT:
        guard creating else { return nil }
        return try reporting("make the folder", path) { () throws(SystemError) in
          do throws(SystemError) {
            try system.makeFolder(entry(name))
          } catch {
            // Another process created it first, and may end before it is on the disk: flush it here too.
            if error.code != EEXIST { throw error }
          }
          try flush(durability)
          return try open(entry(name))
        }
      case ENOTDIR, ELOOP, EMLINK:
        // Systems differ in which of these they report for a symbolic link.
        if let status = try? system.status(entry(name)), status.kind == .link {
          throw DownloadError(
            .unsafePath, "\(path) is a symbolic link, which could lead out of the root: name the real folder",
            cause: error)
        }
        throw SystemError(ENOTDIR).downloadError("open the folder", path)
      default:
        throw error.downloadError("open the folder", path)
      }
    }
  }

  /// Creates a folder and the folders above it. New folders below `root` are private to this user (mode 0700).
  ///
  /// - Throws: `DownloadError`, which names the folder that could not be created: with `.permission` when a file has its
  ///   name, or the folder above it cannot be written.
  package static func makeFolders(
    _ path: String, privateBelow root: String? = nil, durability: Durability, system: FileSystem
  ) throws(DownloadError) {
    let isPrivate = root.map { PathText.remainder(of: path, below: $0) != nil } ?? false
    let mode: mode_t = isPrivate ? 0o700 : 0o777
    do {
      try system.makeFolder(Entry(path), mode: mode)
    } catch {
      switch error.code {
      case ENOENT where path != "/":
        try makeFolders(PathText.split(path).folder, privateBelow: root, durability: durability, system: system)
        do {
          try system.makeFolder(Entry(path), mode: mode)
        } catch {
          if error.code != EEXIST { throw failure(error, toMake: path, system) }
        }
      case EEXIST:
        // Another process may just have created it, and may end before it is on the disk: flush it here too.
        let kind: FileStatus.Kind
        do { kind = try system.status(Entry(path), following: true).kind } catch {
          throw failure(error, toMake: path, system)
        }
        if kind != .folder { throw failure(SystemError(ENOTDIR), toMake: path, system) }
      default:
        throw failure(error, toMake: path, system)
      }
    }
    if durability == .power {
      do { try OpenFolder(PathText.split(path).folder, system: system).flush(durability) } catch {
        throw failure(error, toMake: path, system)
      }
    }
  }

  /// The error of a folder that could not be created. The system says of some of them only that something does not exist.
  private static func failure(_ error: SystemError, toMake path: String, _ system: FileSystem) -> DownloadError {
    let usual = error.downloadError("make the folder", path)
    guard error.code == ENOENT else { return usual }
    let advice: String
    if (try? system.status(Entry(path), following: false).kind) == .link {
      advice = "it is a link to a folder that does not exist: mount the disk of that folder, or choose another folder"
    } else if (try? system.status(Entry(PathText.split(path).folder), following: true).kind) == .folder {
      advice = "the file system of \(PathText.split(path).folder) makes no folders there: choose another folder"
    } else {
      return usual
    }
    return DownloadError(
      usual.code, "could not make the folder \(path): \(String(cString: strerror(error.code))); \(advice)", cause: error
    )
  }
}
