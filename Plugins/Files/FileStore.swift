public import DownpipeCore
import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Keeps downloads as files below one folder.
///
/// ```swift
/// FileStore("~/Downloads")
/// FileStore("/srv/mirror", onConflict: .replace, durability: .power)
/// ```
/// Unfinished downloads are in `<root>/.downpipe/partials`, what steps write is in `<root>/.downpipe/work`:
/// on the file system of the destination, so that the finished file appears by one atomic rename or link.
/// Both are keyed by the download's id and generation. The root and its folders are made when they are
/// first needed, and again when somebody has deleted them.
///
/// Destinations are relative to the root and cannot leave it: absolute paths, `..`, and symbolic links below
/// the root are refused with `.unsafePath`. A destination folder may be on another file system; the file
/// is copied beside its place then.
///
/// A new download is written to a file without a name, where the system can do that, which is linked to its place or
/// vanishes with the process. It gets a name among the partials once the ledger has to rely on it.
///
/// Two stores may share a root, in two processes too: no name is taken twice, and a named partial has one writer at a
/// time. While it is open it is claimed by an entry beside it, `<partial>.owner`; a second opening fails with `.inUse`,
/// with whatever ledger. The claim of a process that has ended is taken over at once, that of a process which cannot
/// be proved alive or dead from here (on another machine, in another container) when it was not renewed for a minute.
///
/// `.downpipe` is for the user alone (mode 0700), and so are partials (0600); what is published has the permissions that
/// the process's umask gives to new files.
public struct FileStore: Storage {
  /// The absolute path of the folder.
  public let root: String
  /// What happens when a name is taken.
  public let onConflict: ConflictPolicy
  /// What a finished write survives.
  public let durability: Durability

  let folders: StoreFolders

  /// Describes a store. Nothing is made or opened before it is needed.
  ///
  /// - Parameters:
  ///   - root: the folder; `~` is the home directory, other relative paths begin at the working directory.
  ///   - onConflict: what happens when a name is taken.
  ///   - durability: what a finished write survives: the death of the process, or the loss of power.
  public init(_ root: String, onConflict: ConflictPolicy = .keepBoth, durability: Durability = .process) {
    self.init(root, onConflict: onConflict, durability: durability, system: .system)
  }

  init(_ root: String, onConflict: ConflictPolicy = .keepBoth, durability: Durability = .process, system: FileSystem) {
    self.root = PathText.absolute(root)
    self.onConflict = onConflict
    self.durability = durability
    folders = StoreFolders(root: self.root, durability: durability, system: system)
  }

  var system: FileSystem { folders.system }

  /// The root, and what differs from the defaults.
  public var summary: String {
    let power = durability == .power ? ", survives power loss" : ""
    return "\(storedPath(outsideRoot: root)), \(onConflict.words)\(power)"
  }

  /// A name that stays when the root is moved: a random one, kept in the store's own folder. `nil` where that folder can
  /// neither be read nor made.
  public var location: String? { folders.name() }

  var publisher: Publisher {
    Publisher(
      root: root, onConflict: onConflict, durability: durability, reserved: StoreFolders.ownName, system: system,
      folders: folders)
  }

  /// Refuses names and folders that no file below the root can have: `..`, absolute paths, components that are empty or
  /// longer than 255 bytes, slashes in a name, and the store's own folder.
  public func check(_ destination: DownloadRequest.Destination) throws(DownloadError) {
    try publisher.check(destination)
  }

  // MARK: Partials

  /// Opens the partial of a download, which is empty when there was none.
  ///
  /// A new one has no name before ``DownpipeCore/Partial/persist()``, and nothing is made before its first byte. The
  /// name of any other is claimed until it is closed.
  ///
  /// - Throws: `DownloadError` with `.inUse` while another owner has it open, or may have; `.permission`, `.noSpace`
  ///   or `.storage`; `.invalidRequest` for an id that is empty or longer than 255 bytes.
  public func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    let path = folders.partials + "/" + (try PartialName.path(of: key))
    if isNew { return FilePartial(path, folders: folders) }
    return try reporting("open the partial", path) {
      try folders.making(PathText.split(path).folder) {
        let claim = try PartialClaim.take(path, keepingBytes: true, durability: durability, system: system)
        do {
          // No other program has a reason to put a link here.
          let file = try OpenFile.ifPresent(Entry(path), O_RDWR | O_NOFOLLOW, system: system)
          let length = try file?.status().size ?? 0
          return FilePartial(path, file: file, length: length, claim: claim, folders: folders)
        } catch {
          claim.release()
          throw error
        }
      }
    }
  }

  /// Removes the partial and the download's workspace. No error when there is nothing.
  ///
  /// A partial that this store itself has open loses its name. What is open through another store, in this process or
  /// another, is never removed.
  /// - Throws: `DownloadError` with `.inUse` while another owner has the partial open under its name, or may have;
  ///   `.permission` or `.storage`.
  public func removePartial(_ key: PartialKey) async throws {
    let partial = folders.partials + "/" + (try PartialName.path(of: key))
    let workspace = folders.work + "/" + (try PartialName.stem(of: key))
    // Most were published, and are gone; most downloads have no workspace.
    let hasName = try reporting("remove the partial", partial) { () throws(SystemError) in
      try system.statusIfPresent(Entry(partial)) != nil
    }
    let hasWorkspace = try reporting("remove the workspace", workspace) { () throws(SystemError) in
      try system.statusIfPresent(Entry(workspace)) != nil
    }
    guard hasName || hasWorkspace else { return }
    let claim = try claimForRemoval(partial)
    defer { claim?.release() }
    try reporting("remove the partial", partial) { () throws(SystemError) in
      do throws(SystemError) { try system.unlink(Entry(partial)) } catch  where error.isAbsence {}
    }
    if hasWorkspace { try await removeTree(workspace) }
    claim?.release()
    removeEmptyFolders(above: partial, upTo: folders.partials)
    removeEmptyFolders(above: workspace, upTo: folders.work)
  }

  /// The folder for the steps of a download; made if missing.
  public func workspace(_ key: PartialKey) async throws -> String? {
    let path = folders.work + "/" + (try PartialName.stem(of: key))
    try reporting("make the workspace", path) {
      try folders.making(PathText.split(path).folder) {
        do throws(SystemError) { try system.makeFolder(Entry(path), mode: 0o700) } catch  where error.code == EEXIST {}
        // A step's result is worth nothing when the folder it is in loses its name.
        try OpenFolder.flush(above: path, durability, system: system)
      }
    }
    return path
  }

  /// The partials on disk, in no particular order: to find those that no ledger knows any more. A workspace whose
  /// partial is gone counts as a partial without bytes.
  ///
  /// All of them are held in memory, a few hundred bytes each. What dead processes have left beside partials that
  /// are gone is removed.
  /// - Throws: `DownloadError` with `.permission` or `.storage`; `CancellationError`.
  public func partials() async throws -> [StoredPartial]? {
    try await BlockingThreads.run { [folders] cancellation in
      try reporting("list", folders.partials) {
        let listing = PartialListing(folders: folders, isCancelled: { cancellation.isCancelled })
        return try listing.read()
      }
    }
  }

  /// The bytes that may still be written below the root. Quotas count only where the file system shows them so.
  ///
  /// - Throws: `DownloadError` with `.permission` or `.storage`.
  public func availableBytes() async throws -> Int64? {
    try await BlockingThreads.run { [root, system] _ in
      try reporting("look at the space of", root) { () throws(SystemError) in
        try system.availableBytes(atOrAbove: root)
      }
    }
  }

  // MARK: -

  /// The claim for removing a partial; `nil` when this store holds it already, or when there is no folder that it could
  /// be in.
  private func claimForRemoval(_ partial: String) throws -> PartialClaim? {
    try reporting("remove the partial", partial) {
      if let held = folders.claim(on: partial) {
        try held.check()
        return nil
      }
      do {
        return try PartialClaim.take(partial, keepingBytes: false, durability: durability, system: system)
      } catch let error as SystemError where error.isAbsence {
        return nil
      }
    }
  }

  func removeTree(_ path: String) async throws {
    try await BlockingThreads.run { [system] _ in
      try reporting("remove", path) { () throws(SystemError) in try FileTree(system: system).remove(Entry(path)) }
    }
  }

  /// Long ids have folders of their own.
  func removeEmptyFolders(above path: String, upTo end: String) {
    var folder = PathText.split(path).folder
    while folder.utf8.count > end.utf8.count {
      do { try system.removeFolder(Entry(folder)) } catch { if !error.isAbsence { return } }
      folder = PathText.split(folder).folder
    }
  }
}
