public import DownpipeCore
import DownpipePOSIX

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A storage that keeps downloads as files below one folder, the root.
///
/// ```swift
/// FileStore("~/Downloads")
/// FileStore("/srv/mirror", onConflict: .replace, durability: .power)
/// ```
/// Partials are in `<root>/.downpipe/partials`, and steps write to `<root>/.downpipe/work`. Both are on the file system
/// of the destination, so that the finished file appears by one atomic rename or link. Their names contain the
/// download's id and generation. The root and its folders are created when they are needed, and again if they were
/// deleted.
///
/// **Destinations.** They are relative to the root and cannot leave it: absolute paths, `..`, and symbolic links below
/// the root fail with `.unsafePath`. If a destination folder is on another file system, the file is copied to a hidden
/// name beside its destination first.
///
/// **New downloads.** Where the system supports it, a new download is written to a file without a name, which is linked
/// to its destination, or deleted when the process ends. It gets a name among the partials when the first checkpoint is
/// committed.
///
/// **Other programs.** A partial that another program cuts while it is written fails with `.storage` instead of being
/// published with zeros in front. A partial whose file has another name, too (a hard link), is copied before it is
/// changed.
///
/// **Several processes.** Two stores can have the same root, also in two processes. No destination is used twice, and a
/// named partial has one writer: an entry beside it, `<partial>.owner`, is its claim. Opening a partial with a claim
/// fails with `.inUse`. If the process of the claim has ended, the claim is taken over at once. If this cannot be
/// proved, since the process was in another container or on another machine, or the machine restarted, it is taken over
/// when it was not renewed for 60 seconds.
///
/// **Network file systems.** The same holds for machines that share a folder over NFS or SMB, provided that the server
/// creates symbolic links, or files with `O_EXCL`, atomically, and that a client sees a new modification time of an
/// entry within 30 seconds, as NFS clients do by default.
///
/// - A machine that stops, or loses the network for 60 seconds, loses its claims. The next owner continues with a copy
///   of the partial. If the first machine returns, its writes fail or reach only the old file, and its next checkpoint
///   or its publishing fails with `.inUse`; on NFS up to a minute later, since clients cache the entries of folders.
/// - Two machines that take over the same abandoned claim in the same instant may both write to the partial until the
///   next checkpoint of the first one, which fails with `.inUse`. On a local disk a lock on the folder excludes this,
///   but many network file systems, such as NFS, cannot lock folders. A shared ledger excludes it, too, since only one
///   owner has the lease of the download.
/// - Not detected: mounts that cache attributes for longer (`actimeo`), and file systems without atomic creation, such
///   as many mounts of object stores. Use such a folder from one machine only.
///
/// **Permissions.** `.downpipe` is private to the user (mode 0700), and so are partials (0600). Published files have
/// the permissions that the process's umask gives to new files.
public struct FileStore: Storage {
  /// The absolute path of the folder that contains all files of the store.
  public let root: String
  /// What happens when the name of a finished file exists already.
  public let onConflict: ConflictPolicy
  /// Whether synchronized and published bytes survive only the end of the process, or also a loss of power.
  public let durability: Durability
  /// What takes longer than a system call is done on threads of its own.
  public var mayBlock: Bool { false }

  let folders: StoreFolders

  /// Creates a store. The folder is created or opened when the first download needs it.
  ///
  /// - Parameters:
  ///   - root: The folder; `~` is the home directory, and other relative paths start at the working directory.
  ///   - onConflict: What happens when the name of a finished file exists already; it gets a number by default.
  ///   - durability: Whether synchronized and published bytes survive only the end of the process, which is the
  ///     default, or also a loss of power, for which each checkpoint waits for the disk.
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

  /// The root, the conflict policy, and the durability if it is `.power`.
  public var summary: String {
    let power = durability == .power ? ", survives power loss" : ""
    return "\(storedPath(outsideRoot: root)), \(onConflict.words)\(power)"
  }

  /// A random name in the store's own folder, which stays the same when the root is moved.
  /// - Throws: `DownloadError` with `.permission`, `.noSpace` or `.storage` while it can be neither read nor made.
  public var location: String? { get throws(DownloadError) { try folders.name() } }

  /// Whether the store's folder has the name, or the name is not known. A folder without a name stays without one.
  public func isLocated(at location: String?) async -> Bool {
    location == nil || location == folders.presentName()
  }

  var publisher: Publisher {
    Publisher(
      root: root, onConflict: onConflict, durability: durability, reserved: StoreFolders.ownName, system: system,
      folders: folders)
  }

  /// Checks that a file below the root can have the name and the folder of a destination.
  ///
  /// - Throws: `DownloadError` with `.unsafePath` for `..`, an absolute path, a component that is empty or longer than
  ///   255 bytes, a slash in the name, and the folder `.downpipe`.
  public func check(_ destination: DownloadRequest.Destination) throws(DownloadError) {
    try publisher.check(destination)
  }

  // MARK: Partials

  /// Opens the partial of a download. It is empty if it does not exist; its file is created with the first byte.
  ///
  /// - Parameters:
  ///   - key: The download's id and generation.
  ///   - isNew: Whether the download has no bytes yet. A new partial has no name before
  ///     ``/DownpipeCore/Partial/persist()``. The name of any other partial is claimed until it is closed.
  /// - Throws: `DownloadError` with `.inUse` while another owner has the partial open, or may have it open;
  ///   `.permission`, `.noSpace` or `.storage`; `.invalidRequest` for an id that is empty or longer than 255 bytes.
  public func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    let path = folders.partials + "/" + (try PartialName.path(of: key))
    if isNew { return FilePartial(path, folders: folders) }
    return try folders.reporting("open the partial", path) {
      try folders.making(PathText.split(path).folder) {
        let claim = try PartialClaim.take(path, keepingBytes: true, durability: durability, system: system)
        do {
          // Partials are never symbolic links.
          let (file, isReadOnly) = try openNamed(path)
          let status = try file?.status()
          return FilePartial(
            path, file: file, length: status?.size ?? 0, claim: claim,
            isShared: status.map { isReadOnly || $0.links > 1 } ?? false, folders: folders)
        } catch {
          claim.release()
          throw error
        }
      }
    }
  }

  /// Opens the file of a partial. If a step has made it read-only, it is opened for reading, and a write copies it first.
  private func openNamed(_ path: String) throws(SystemError) -> (file: OpenFile?, isReadOnly: Bool) {
    do {
      return (try OpenFile.ifPresent(Entry(path), O_RDWR | O_NOFOLLOW, system: system), false)
    } catch {
      guard error.code == EACCES, let file = try? OpenFile(reading: path, followingLink: false, system: system),
        try file.status().kind == .file
      else { throw error }
      return (file, true)
    }
  }

  /// Removes the partial and the workspace of a download, if they exist.
  ///
  /// A partial that this store has open loses its name. A partial that is open in another store is not removed.
  /// - Throws: `DownloadError` with `.inUse` while another owner has the partial open, or may have it open;
  ///   `.permission` or `.storage`.
  public func removePartial(_ key: PartialKey) async throws {
    let partial = folders.partials + "/" + (try PartialName.path(of: key))
    let workspace = folders.work + "/" + (try PartialName.stem(of: key))
    // Most partials were published, and most downloads have no workspace: then no claim is needed.
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
    try? system.unlink(Entry(partial + PartialClaim.copySuffix))
    if hasWorkspace { try await removeTree(workspace) }
    claim?.release()
    removeEmptyFolders(above: partial, upTo: folders.partials)
    removeEmptyFolders(above: workspace, upTo: folders.work)
  }

  /// Returns the folder for the steps of a download, and creates it if it does not exist.
  ///
  /// - Throws: `DownloadError` with `.permission`, `.noSpace` or `.storage`.
  public func workspace(_ key: PartialKey) async throws -> String? {
    let path = folders.work + "/" + (try PartialName.stem(of: key))
    try reporting("create the workspace", path) {
      try folders.making(PathText.split(path).folder) {
        do throws(SystemError) { try system.makeFolder(Entry(path), mode: 0o700) } catch  where error.code == EEXIST {}
        // A step's result is lost if the folder that contains it is not on the disk.
        try OpenFolder.flush(above: path, durability, system: system)
      }
    }
    return path
  }

  /// Lists the partials on disk in no particular order, for finding those that are in no ledger. A workspace without a
  /// partial is listed as a partial without bytes.
  ///
  /// The list takes some hundred bytes of memory per partial. Abandoned claims without a partial are removed.
  /// - Throws: `DownloadError` with `.permission` or `.storage`; `CancellationError`.
  public func partials() async throws -> [StoredPartial]? {
    try await BlockingThreads.run { [folders] cancellation in
      try reporting("list", folders.partials) {
        let listing = PartialListing(folders: folders, isCancelled: { cancellation.isCancelled })
        return try listing.read()
      }
    }
  }

  /// The free bytes of the file system of the root. Quotas are included only where the file system reports them so.
  ///
  /// - Throws: `DownloadError` with `.permission` or `.storage`.
  public func availableBytes() async throws -> Int64? {
    try await BlockingThreads.run { [root, system] _ in
      try reporting("read the free space of", root) { () throws(SystemError) in
        try system.availableBytes(atOrAbove: root)
      }
    }
  }

  // MARK: -

  /// Claims a partial for its removal; `nil` when this store has the claim already, or the folder does not exist.
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

  /// Removes the folders of a long id, or of a destination, that are empty now.
  func removeEmptyFolders(above path: String, upTo end: String) {
    var folder = PathText.split(path).folder
    while folder.utf8.count > end.utf8.count {
      do { try system.removeFolder(Entry(folder)) } catch { if !error.isAbsence { return } }
      folder = PathText.split(folder).folder
    }
  }
}
