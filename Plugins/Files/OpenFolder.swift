import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A folder held open, so that what happens in it happens there whatever becomes of its path.
///
/// It closes itself; nothing is written through its descriptor, so closing it tells nothing.
final class OpenFolder: Sendable {
  let descriptor: CInt
  /// Its absolute path when it was opened.
  let path: String
  let system: FileSystem

  private init(taking descriptor: CInt, path: String, system: FileSystem) {
    self.descriptor = descriptor
    self.path = path
    self.system = system
  }

  deinit { try? system.close(descriptor) }

  /// Opens the folder at an absolute path; its own symbolic links are the user's business.
  convenience init(_ path: String, system: FileSystem) throws(SystemError) {
    let descriptor = try system.open(Entry(path), O_RDONLY | O_DIRECTORY)
    self.init(taking: descriptor, path: path, system: system)
  }

  /// Opens a folder in this one without following a symbolic link.
  func open(_ entry: Entry) throws(SystemError) -> OpenFolder {
    let descriptor = try system.open(entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    return OpenFolder(taking: descriptor, path: PathText.join(path, entry.name), system: system)
  }

  /// An entry of this folder.
  func entry(_ name: String) -> Entry { Entry(name, in: descriptor) }

  /// Whether the folder was removed since it was opened.
  var isGone: Bool {
    guard let now = try? system.statusIfPresent(Entry(path), following: true), let mine = try? system.status(descriptor)
    else { return true }
    return !now.isSame(as: mine)
  }

  /// Flushes the folder's entries to the disk when that is promised.
  func flush(_ durability: Durability) throws(SystemError) {
    if durability == .power { try system.flushFolder(descriptor) }
  }

  /// Flushes the folder that a path lies in, which may be gone.
  static func flush(above path: String, _ durability: Durability, system: FileSystem) throws(SystemError) {
    guard durability == .power else { return }
    do {
      try OpenFolder(PathText.split(path).folder, system: system).flush(durability)
    } catch {
      if error.code != ENOENT { throw error }
    }
  }

  /// Opens a folder below a root, one component after the other, following no symbolic link below the root:
  /// whoever can write there could make one lead anywhere.
  ///
  /// - Parameter creating: whether missing folders are made; otherwise the result is `nil` when one is missing.
  /// - Throws: `DownloadError` with `.unsafePath` for a link, `.permission` for a file in the way and the rest of the table.
  static func open(
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
            // Somebody else has made it first, and may die before it is on the disk.
            if error.code != EEXIST { throw error }
          }
          try flush(durability)
          return try open(entry(name))
        }
      case ENOTDIR, ELOOP, EMLINK:
        // Which of them a symbolic link gives differs from system to system.
        if let status = try? system.status(entry(name)), status.kind == .link {
          throw DownloadError(
            .unsafePath, "\(path) is a symbolic link, which might lead out of the root: name the real folder",
            cause: error)
        }
        throw SystemError(ENOTDIR).downloadError("open the folder", path)
      default:
        throw error.downloadError("open the folder", path)
      }
    }
  }

  /// Makes a folder and those above it, where they are missing; what is made below `root` is for this user alone.
  ///
  /// - Throws: `DownloadError` with `.permission` when a file stands in the way or the folder above may not be written.
  static func makeFolders(
    _ path: String, privateBelow root: String? = nil, durability: Durability, system: FileSystem
  ) throws {
    try reporting("make the folder", path) { () throws(SystemError) in
      try make(path, privateBelow: root, durability: durability, system: system)
    }
  }

  private static func make(
    _ path: String, privateBelow root: String?, durability: Durability, system: FileSystem
  ) throws(SystemError) {
    let isPrivate = root.map { PathText.remainder(of: path, below: $0) != nil } ?? false
    let mode: mode_t = isPrivate ? 0o700 : 0o777
    do {
      try system.makeFolder(Entry(path), mode: mode)
    } catch {
      switch error.code {
      case ENOENT where path != "/":
        try make(PathText.split(path).folder, privateBelow: root, durability: durability, system: system)
        do {
          try system.makeFolder(Entry(path), mode: mode)
        } catch {
          if error.code != EEXIST { throw error }
        }
      case EEXIST:
        // Somebody else has made it a moment ago, and may die before it is on the disk.
        guard try system.status(Entry(path), following: true).kind == .folder else { throw SystemError(ENOTDIR) }
      default:
        throw error
      }
    }
    if durability == .power {
      try OpenFolder(PathText.split(path).folder, system: system).flush(durability)
    }
  }
}
