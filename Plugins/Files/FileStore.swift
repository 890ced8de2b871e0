public import DownpipeCore

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
/// Two stores may share a root, in two processes too: no name is taken twice, and a partial has one writer at a time.
/// While it is open it is claimed by an entry beside it, `<partial>.owner`; a second opening fails with `.inUse`, with
/// whatever ledger. The claim of a process that has ended is taken over at once, that of another machine never:
/// nothing proves from here that it is gone. No lock of the system is needed, so network file systems will do.
///
/// The engine holds a partial until the download is published or the attempt has ended, steps included.
public struct FileStore: Storage {
  /// The absolute path of the folder.
  public let root: String
  /// What happens when a name is taken.
  public let onConflict: ConflictPolicy
  /// What a finished write survives.
  public let durability: Durability

  let system: FileSystem
  private let partialsFolder: String
  private let workFolder: String
  /// Whose claims are our own; copies of the value share it.
  private let identity = Claimants.newStore()

  /// The folder below the root that is the store's own.
  static let ownFolder = ".downpipe"

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
    self.system = system
    let own = PathText.join(self.root, Self.ownFolder)
    partialsFolder = own + "/partials"
    workFolder = own + "/work"
  }

  /// The root, and what differs from the defaults.
  public var summary: String {
    let power = durability == .power ? ", survives power loss" : ""
    return "\(storedPath(outsideRoot: root)), \(onConflict.words)\(power)"
  }

  /// The root, relative to the home directory where it is below it.
  public var location: String? { storedPath(outsideRoot: root) }

  private var publisher: Publisher {
    Publisher(
      root: root, onConflict: onConflict, durability: durability, reserved: Self.ownFolder, system: system)
  }

  // MARK: Partials

  /// Opens the partial of a download, which is empty when there was none, and claims it until it is closed.
  ///
  /// - Throws: `DownloadError` with `.inUse` while somebody else has it open, or may have; `.permission`, `.noSpace`
  ///   or `.storage`; `.invalidRequest` for an id that is empty or longer than 255 bytes.
  public func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    let path = partialsFolder + "/" + (try PartialName.path(of: key))
    return try making(PathText.split(path).folder) {
      let claim = try PartialClaim.take(path, for: identity, system: system)
      do {
        // Nobody else has a reason to put a link here.
        let descriptor = try system.open(Entry(path), O_RDWR | O_CREAT | O_NOFOLLOW)
        return FilePartial(
          descriptor: descriptor, path: path, claim: claim, durability: durability, system: system)
      } catch {
        claim.release()
        throw error
      }
    } orReport: { error in
      error.downloadError("open the partial", path)
    }
  }

  /// Removes the partial and the download's workspace. No error when there is nothing.
  ///
  /// A partial that this store itself has open loses its name; what is written to it then is lost.
  /// - Throws: `DownloadError` with `.inUse` while somebody else has the partial open, or may have; `.permission` or
  ///   `.storage`.
  public func removePartial(_ key: PartialKey) async throws {
    let partial = partialsFolder + "/" + (try PartialName.path(of: key))
    let workspace = workFolder + "/" + (try PartialName.stem(of: key))
    try reporting("remove the partial", partial) {
      // Most were published, and are gone.
      if try system.statusIfPresent(Entry(partial)) != nil { try removeClaimed(partial) }
    }
    do {
      // Most downloads have no workspace, and most workspaces are empty by now.
      try system.removeFolder(Entry(workspace))
    } catch  where error.isAbsence {
    } catch {
      try await removeTree(workspace)
    }
    removeEmptyFolders(above: partial, upTo: partialsFolder)
    removeEmptyFolders(above: workspace, upTo: workFolder)
  }

  /// The folder for the steps of a download; made if missing.
  public func workspace(_ key: PartialKey) async throws -> String? {
    let path = workFolder + "/" + (try PartialName.stem(of: key))
    try making(PathText.split(path).folder) {
      do throws(SystemError) { try system.makeFolder(Entry(path)) } catch  where error.code == EEXIST {}
      // A step's result is worth nothing when the folder it is in loses its name.
      try OpenFolder.flush(above: path, durability, system: system)
    } orReport: { error in
      error.downloadError("make the workspace", path)
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
    try await Blocking.run { [partialsFolder, workFolder, identity, system] cancellation in
      try reporting("list", partialsFolder) {
        let listing = PartialListing(store: identity, system: system, isCancelled: { cancellation.isCancelled })
        return try listing.read(partialsFolder, workspaces: workFolder)
      }
    }
  }

  /// The bytes that may still be written below the root. Quotas count only where the file system shows them so.
  ///
  /// - Throws: `DownloadError` with `.permission` or `.storage`.
  public func availableBytes() async throws -> Int64? {
    try await Blocking.run { [root, system] _ in
      try reporting("look at the space of", root) { () throws(SystemError) in
        try system.availableBytes(atOrAbove: root)
      }
    }
  }

  // MARK: Artifacts

  /// Moves a finished artifact to its destination and settles conflicts; see ``ConflictPolicy``.
  ///
  /// A note is kept before the file appears; called again after a crash with that note, it finds out
  /// whether the first call succeeded.
  /// - Throws: `DownloadError` with `.alreadyExists`, `.unsafePath`, `.permission`, `.noSpace` or `.storage`.
  public func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    try await publisher.publish(
      artifact, directory: destination.directory, name: destination.name ?? artifact.name, in: context)
  }

  /// Whether the artifact is still among partials and workspaces, or in memory, and has to be published.
  public func isStaged(_ artifact: Artifact) -> Bool {
    guard let path = artifact.path else { return true }
    return PathText.remainder(of: path, below: partialsFolder) != nil
      || PathText.remainder(of: path, below: workFolder) != nil
  }

  /// Whether a published artifact is still there: a file or a folder, as it was. Its size is not looked at.
  public func contains(_ artifact: Artifact) async -> Bool {
    guard let path = artifact.path, let status = try? system.status(Entry(path), following: true) else {
      return false
    }
    return status.kind == (artifact.kind == .file ? .file : .folder)
  }

  /// With ``ConflictPolicy/reuse``, the file that has the download's name already, when it has the expected size.
  ///
  /// The name is the request's, or the last part of its URL, made safe; a name that only the server knows
  /// is dealt with when the file is published. Digests are not checked here.
  /// - Throws: `DownloadError` with `.unsafePath`, `.permission` or `.storage`.
  public func existing(for request: DownloadRequest) async throws -> Artifact? {
    guard onConflict == .reuse else { return nil }
    return try publisher.existing(
      directory: request.destination.directory,
      name: request.destination.name ?? SafeFileName.make(from: nil, url: request.url), size: request.expectedSize)
  }

  /// Removes a published file, or a folder with all that is in it. No error when there is nothing.
  ///
  /// - Throws: `DownloadError` with `.unsafePath` for a folder that holds the store itself or the user's home;
  ///   `.permission` or `.storage`.
  public func remove(_ artifact: Artifact) async throws {
    guard let path = artifact.path else { return }
    guard artifact.kind == .directory else {
      return try reporting("remove", path) { () throws(SystemError) in
        do throws(SystemError) { try system.unlink(Entry(path)) } catch  where error.isAbsence {}
      }
    }
    let folder = PathText.normalized(path)
    for precious in [root, PathText.join(root, Self.ownFolder), PathText.home]
    where folder == precious || PathText.remainder(of: precious, below: folder) != nil {
      throw DownloadError(.unsafePath, "\(folder) holds more than this download: remove it by hand")
    }
    try await removeTree(folder)
  }

  // MARK: Paths

  /// A path as the ledger keeps it: relative to the root when it is below it, with `~` when it is below the
  /// home directory, otherwise absolute. Both may be elsewhere at the next start.
  public func storedPath(for path: String) -> String {
    let path = PathText.normalized(path)
    guard path != root else { return "." }
    guard let rest = PathText.remainder(of: path, below: root) else { return storedPath(outsideRoot: path) }
    return rest.hasPrefix("~") ? "./" + rest : String(rest)
  }

  private func storedPath(outsideRoot path: String) -> String {
    PathText.remainder(of: path, below: PathText.home).map { "~/" + $0 } ?? path
  }

  /// The absolute path behind what ``storedPath(for:)`` gave.
  ///
  /// - Throws: `DownloadError` with `.unsafePath` for text with `..` or a NUL, or none at all.
  public func path(forStored storedPath: String) throws -> String {
    guard !storedPath.isEmpty, !PathText.climbs(storedPath) else {
      throw DownloadError(
        .unsafePath, "the ledger holds the path “\(storedPath.prefix(200))”, which leaves the root: remove the download"
      )
    }
    if storedPath.hasPrefix("/") { return storedPath }
    if storedPath.hasPrefix("~/") { return PathText.join(PathText.home, storedPath.dropFirst(2)) }
    if storedPath == "." { return root }
    return PathText.join(root, storedPath.hasPrefix("./") ? storedPath.dropFirst(2) : storedPath[...])
  }

  // MARK: -

  /// Does something in a folder that is nearly always there: it is made only after the first failure, which
  /// saves the hot path every question about it.
  private func making<Value>(
    _ folder: String, _ body: () throws -> Value, orReport report: (SystemError) -> DownloadError
  ) throws -> Value {
    for _ in 0..<8 {
      do {
        return try body()
      } catch let error as SystemError {
        guard error.code == ENOENT else { throw report(error) }
      }
      // Somebody who empties folders at the same time can make this fail again, but not for ever.
      try OpenFolder.makeFolders(folder, durability: durability, system: system)
    }
    throw report(SystemError(ENOENT))
  }

  private func removeClaimed(_ partial: String) throws {
    let claim: PartialClaim?
    do {
      claim = try PartialClaim.take(partial, for: identity, system: system)
    } catch let error as DownloadError {
      guard error.code == .inUse, try PartialClaim.isHeld(partial, by: identity, system: system) else { throw error }
      claim = nil
    } catch let error as SystemError where error.isAbsence {
      return
    }
    defer { claim?.release() }
    do throws(SystemError) { try system.unlink(Entry(partial)) } catch  where error.isAbsence {}
  }

  private func removeTree(_ path: String) async throws {
    try await Blocking.run { [system] _ in
      try reporting("remove", path) { () throws(SystemError) in try FileTree(system: system).remove(Entry(path)) }
    }
  }

  /// Long ids have folders of their own.
  private func removeEmptyFolders(above path: String, upTo end: String) {
    var folder = PathText.split(path).folder
    while folder.utf8.count > end.utf8.count {
      do { try system.removeFolder(Entry(folder)) } catch { return }
      folder = PathText.split(folder).folder
    }
  }
}
