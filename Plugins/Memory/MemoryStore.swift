public import DownpipeCore
import DownpipePOSIX
import Foundation
import Synchronization

/// A storage in memory, for tests and for small downloads whose bytes the program needs.
///
/// ```swift
/// let store = MemoryStore()
/// let downloader = try await Downloader { HTTPSource(); store }
/// let feed = try await downloader.add("https://example.org/feed.json").value
/// if case .memory(let bytes) = feed.location { print(bytes.count) }
/// ```
/// A published artifact stays in the store under its name until ``remove(_:)``. Folders of destinations are ignored:
/// two artifacts of one name conflict. The contents end with the process. Copies of the value share them.
public struct MemoryStore: Storage {
  /// The maximum number of bytes in partials and published artifacts together.
  public let maximumBytes: Int
  /// The maximum number of published artifacts.
  public let maximumArtifacts: Int
  /// What happens when the name of an artifact exists already.
  public let onConflict: ConflictPolicy

  let contents = MemoryContents()

  /// Creates an empty store.
  ///
  /// - Parameters:
  ///   - maximumBytes: The maximum number of bytes in partials and published artifacts together; 256 MiB by default. A
  ///     download that exceeds it fails with `.noSpace`.
  ///   - maximumArtifacts: The maximum number of published artifacts.
  ///   - onConflict: What happens when the name of an artifact exists already.
  public init(
    maximumBytes: Int = 256 << 20, maximumArtifacts: Int = 10_000, onConflict: ConflictPolicy = .keepBoth
  ) {
    self.maximumBytes = max(0, maximumBytes)
    self.maximumArtifacts = max(0, maximumArtifacts)
    self.onConflict = onConflict
  }

  /// The limit in bytes, and the conflict policy.
  public var summary: String { "at most \(maximumBytes) bytes, \(onConflict.words)" }

  /// The published artifact with a name; `nil` when there is none.
  public subscript(name: String) -> Artifact? { contents.state.withLock { $0.published[name] } }

  /// Checks the name and the folder of a destination by the rules of `FileStore`, so that a request that works in
  /// memory works with files, too.
  ///
  /// - Throws: `DownloadError` with `.unsafePath`.
  public func check(_ destination: DownloadRequest.Destination) throws(DownloadError) {
    if let name = destination.name { try PathText.checkName(name) }
    if let directory = destination.directory { _ = try PathText.components(of: directory) }
  }

  /// Opens the partial of a download, and creates it if it does not exist.
  ///
  /// - Throws: `DownloadError` with `.inUse` until an earlier opening of the partial is closed.
  public func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
    let opening = try contents.state.withLock { state throws(DownloadError) in
      guard state.holders[key] == nil else {
        throw inUse(key)
      }
      state.openings += 1
      state.holders[key] = state.openings
      if isNew { state.partialBytes -= state.partials[key]?.count ?? 0 }
      if isNew || state.partials[key] == nil { state.partials[key] = [] }
      return state.openings
    }
    return MemoryPartial(key: key, opening: opening, store: self)
  }

  /// Removes the partial, if it exists. Calls on an open one fail from then on.
  public func removePartial(_ key: PartialKey) async throws {
    contents.state.withLock { state in
      state.holders[key] = nil
      state.partialBytes -= state.partials.removeValue(forKey: key)?.count ?? 0
    }
  }

  private func inUse(_ key: PartialKey) -> DownloadError {
    DownloadError(
      .inUse, "the partial of “\(key.id)” is open in another download of this process: wait until that ends")
  }

  /// Returns `nil`: steps work in memory.
  public func workspace(_ key: PartialKey) async throws -> String? { nil }

  /// Stores an artifact under its name. A published artifact is renamed. An artifact that a step wrote to a file stays
  /// in that file.
  ///
  /// - Throws: `DownloadError` with `.alreadyExists`, `.unsafePath` or `.noSpace`; `.processing` for an artifact with
  ///   companions, which need a storage with files; `.storage` for a published artifact
  ///   whose bytes are no longer in the store.
  public func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
    guard artifact.companions.isEmpty else {
      throw DownloadError(
        .processing, "“\(artifact.name)” has companions, which need files: use a storage such as FileStore")
    }
    guard artifact.path == nil else { return artifact }
    let name = destination.finalName ?? artifact.name
    try check(.init(directory: destination.directory, name: name))
    if let prior = context.priorNote, let kept = self[prior],
      kept.location == artifact.location || kept.isSame(as: artifact)
    {
      return kept
    }
    let published = kept(artifact)
    if let published, published.name == name { return published }
    guard case .memory(let bytes) = (published ?? artifact).location, !artifact.lacksBytes || published != nil else {
      throw DownloadError(
        .storage, "the bytes of “\(artifact.name)” are no longer in memory: remove the download and add it again")
    }
    var final = published ?? artifact
    final.size = .known(Int64(bytes.count))
    // The time distinguishes it from another artifact with the same name and the same bytes.
    final.modifiedAt = published?.modifiedAt ?? Date()
    // The note must be stored between choosing the name and taking it, and another download may take the name
    // meanwhile.
    let earlier = context.replaces.flatMap(kept).flatMap { earlier in
      earlier.name == name || NumberedName.isNumbered(earlier.name, from: name, kind: .file) ? earlier : nil
    }
    while true {
      let choice = try contents.state.withLock { state throws(DownloadError) in
        if let published, onConflict == .keepBoth, state.published[name] != nil,
          NumberedName.isNumbered(published.name, from: name, kind: .file)
        {
          return (name: published.name, existing: Optional(published))
        }
        // The download replaces its own artifact.
        if let earlier, Self.isKept(earlier, in: state) { return (name: earlier.name, existing: Artifact?.none) }
        return try choose(name, bytes, in: state)
      }
      if let existing = choice.existing {
        if let published, published.name == existing.name { return existing }
        if let published { try await remove(published) }
        return Self.reused(existing)
      }
      try await context.note(choice.name)
      final.name = choice.name
      let taken = try contents.state.withLock { [final] state throws(DownloadError) in
        let isOwn = earlier.map { $0.name == choice.name && Self.isKept($0, in: state) } ?? false
        guard onConflict == .replace || isOwn || state.published[choice.name] == nil else { return false }
        if let published { take(published, from: &state) }
        do throws(DownloadError) {
          try insert(final, bytes.count, for: context.request.id, into: &state)
        } catch {
          if let published { put(published, into: &state) }
          throw error
        }
        return true
      }
      if taken { return final }
    }
  }

  /// Whether a published artifact is still in the store.
  private static func isKept(_ artifact: Artifact, in state: MemoryContents.State) -> Bool {
    state.published[artifact.name]?.isSame(as: artifact) ?? false
  }

  private func choose(
    _ name: String, _ bytes: [UInt8], in state: MemoryContents.State
  ) throws(DownloadError) -> (name: String, existing: Artifact?) {
    guard let occupant = state.published[name], onConflict != .replace else { return (name, nil) }
    if onConflict == .fail {
      throw DownloadError(
        .alreadyExists, "“\(name)” exists already, and the conflict policy is to fail: choose another name or policy")
    }
    if onConflict == .reuse, occupant.location == .memory(bytes) { return (name, occupant) }
    let number = NumberedName.firstFree { state.published[NumberedName.make(name, $0, kind: .file)] != nil }
    return (NumberedName.make(name, number, kind: .file), nil)
  }

  private func take(_ artifact: Artifact, from state: inout MemoryContents.State) {
    guard let kept = state.published[artifact.name], kept.isSame(as: artifact) else { return }
    state.published[artifact.name] = nil
    state.publishedBytes -= kept.byteCount
  }

  private func put(_ artifact: Artifact, into state: inout MemoryContents.State) {
    state.published[artifact.name] = artifact
    state.publishedBytes += artifact.byteCount
  }

  private func insert(
    _ artifact: Artifact, _ count: Int, for id: DownloadID, into state: inout MemoryContents.State
  ) throws(DownloadError) {
    let replaced = state.published[artifact.name]
    // The artifact shares its bytes with the download's partial, which is removed next.
    let own = state.partials.reduce(0) { $1.key.id == id ? $0 + $1.value.count : $0 }
    let others = state.partialBytes - own + state.publishedBytes - (replaced?.byteCount ?? 0)
    guard count <= maximumBytes - others, replaced != nil || state.published.count < maximumArtifacts else {
      throw full("publish “\(artifact.name)”")
    }
    state.publishedBytes += count - (replaced?.byteCount ?? 0)
    state.published[artifact.name] = artifact
  }

  /// Long copies are made on threads of their own.
  public var mayBlock: Bool { false }

  /// Whether the artifact is in memory and not published yet.
  public func isStaged(_ artifact: Artifact) -> Bool { artifact.path == nil && kept(artifact) == nil }

  /// The published artifact with the bytes that a ledger does not store; `nil` when it is no longer in the store.
  public func published(_ described: Artifact) -> Artifact? {
    guard described.path == nil, let kept = kept(described) else { return nil }
    return described.isReused ? Self.reused(kept) : kept
  }

  /// The stored artifact that the given one describes.
  private func kept(_ artifact: Artifact) -> Artifact? {
    self[artifact.name].flatMap { $0.isSame(as: artifact) ? $0 : nil }
  }

  /// Whether a published artifact still exists: in memory, or in the file that a step wrote.
  public func contains(_ artifact: Artifact) async -> Bool {
    guard artifact.path == nil else { return artifact.isOnDisk(.system) }
    return !isStaged(artifact)
  }

  /// Returns a published artifact with its bytes; `nil` if they are those of another process, which has ended.
  public func current(_ artifact: Artifact) async -> Artifact? {
    artifact.path == nil ? published(artifact) : artifact.current(.system)
  }

  /// With `ConflictPolicy.reuse`, returns the artifact that has the name of the download and the expected size.
  ///
  /// The name is the name in the request, or the last component of its URL.
  public func existing(for request: DownloadRequest) async throws -> Artifact? {
    guard onConflict == .reuse else { return nil }
    let name = request.destination.name ?? SafeFileName.make(from: nil, url: request.url)
    guard let kept = self[name], request.expectedSize == .unknown || kept.size == request.expectedSize
    else { return nil }
    return Self.reused(kept)
  }

  /// The artifact of another download, which is not this one's own.
  private static func reused(_ artifact: Artifact) -> Artifact {
    var artifact = artifact
    artifact.isReused = true
    return artifact
  }

  /// Removes a published artifact, if it exists; also from the file that a step wrote. One that was reused stays.
  ///
  /// - Throws: `DownloadError` with `.permission` or `.storage` for a file that cannot be removed; `.unsafePath` for a
  ///   folder that contains the user's home directory.
  public func remove(_ artifact: Artifact) async throws {
    guard !artifact.isReused else { return }
    if artifact.path != nil { try await artifact.removeFromDisk(.system) }
    contents.state.withLock { state in take(artifact, from: &state) }
  }

  /// Returns the path itself.
  public func storedPath(for path: String) -> String { path }

  /// Returns the path itself.
  ///
  /// - Throws: `DownloadError` with `.unsafePath` for a path that is not absolute or has a `..` component.
  public func path(forStored storedPath: String) throws -> String {
    guard storedPath.hasPrefix("/"), !PathText.climbs(storedPath) else {
      throw DownloadError(
        .unsafePath,
        "the path “\(storedPath.prefix(200))” in the ledger is not absolute or contains “..”: remove the download")
    }
    return storedPath
  }

  func full(_ action: String) -> DownloadError {
    DownloadError(
      .noSpace,
      "cannot \(action): the limits of the memory store are \(maximumBytes) bytes and \(maximumArtifacts) artifacts; "
        + "remove artifacts or raise the limits")
  }
}
