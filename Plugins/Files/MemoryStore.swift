public import DownpipeCore
import Foundation
import Synchronization

/// Keeps downloads in memory: for tests, and for small files that somebody wants as bytes.
///
/// ```swift
/// let store = MemoryStore()
/// let downloader = try await Downloader { HTTPSource(); store }
/// let bytes = try await downloader.add("https://example.org/feed.json").value.location
/// ```
/// Published artifacts stay in the store under their name until ``remove(_:)``; destination folders are not
/// kept apart. Nothing survives the process. Copies of the value share their contents.
public struct MemoryStore: Storage {
  /// The most bytes of partials and published artifacts together.
  public let maximumBytes: Int
  /// The most published artifacts.
  public let maximumArtifacts: Int
  /// What happens when a name is taken.
  public let onConflict: ConflictPolicy

  let contents = MemoryContents()

  /// Makes a store.
  ///
  /// - Parameters:
  ///   - maximumBytes: the most bytes of partials and published artifacts together.
  ///   - maximumArtifacts: the most published artifacts.
  ///   - onConflict: what happens when a name is taken.
  public init(
    maximumBytes: Int = 256 << 20, maximumArtifacts: Int = 10_000, onConflict: ConflictPolicy = .keepBoth
  ) {
    self.maximumBytes = max(0, maximumBytes)
    self.maximumArtifacts = max(0, maximumArtifacts)
    self.onConflict = onConflict
  }

  /// The bounds.
  public var summary: String { "at most \(maximumBytes) bytes, \(onConflict.words)" }

  /// The published artifact of a name.
  public subscript(name: String) -> Artifact? { contents.state.withLock { $0.published[name] } }

  /// Refuses the names and folders that a ``FileStore`` refuses, so that what was tried in memory works with files.
  public func check(_ destination: DownloadRequest.Destination) throws(DownloadError) {
    if let name = destination.name { try PathText.checkName(name) }
    if let directory = destination.directory { _ = try PathText.components(of: directory) }
  }

  /// Opens the partial of a download, which is empty when there was none, and holds it until it is closed.
  ///
  /// - Throws: `DownloadError` with `.inUse` while it is open.
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

  /// Removes the partial. No error when there is none. An opening of it can do nothing more.
  public func removePartial(_ key: PartialKey) async throws {
    contents.state.withLock { state in
      state.holders[key] = nil
      state.partialBytes -= state.partials.removeValue(forKey: key)?.count ?? 0
    }
  }

  private func inUse(_ key: PartialKey) -> DownloadError {
    DownloadError(
      .inUse, "the partial of “\(key.id)” is held by another download of this process: wait until it is done")
  }

  /// There are no paths.
  public func workspace(_ key: PartialKey) async throws -> String? { nil }

  /// Keeps an artifact under its name. One that a step has put into a file stays there; a published one is renamed.
  ///
  /// - Throws: `DownloadError` with `.alreadyExists`, `.unsafePath` or `.noSpace`; `.storage` for a published artifact
  ///   whose bytes are gone.
  public func publish(
    _ artifact: Artifact, of partial: (any Partial)?, at destination: DownloadRequest.Destination,
    in context: ProcessingContext
  ) async throws -> Artifact {
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
      throw DownloadError(.storage, "the bytes of “\(artifact.name)” are gone: remove the download and start it again")
    }
    var final = published ?? artifact
    final.size = .known(Int64(bytes.count))
    // Tells it from others of the same name and the same bytes.
    final.modifiedAt = published?.modifiedAt ?? Date()
    // Nothing else decides between choosing the name and taking it, for the note must be kept in between.
    while true {
      let choice = try contents.state.withLock { state throws(DownloadError) in
        if let published, onConflict == .keepBoth, state.published[name] != nil,
          NumberedName.isNumbered(published.name, from: name, kind: .file)
        {
          return (name: published.name, existing: Optional(published))
        }
        return try choose(name, bytes, in: state)
      }
      if let existing = choice.existing {
        if let published, published.name != existing.name { try await remove(published) }
        return existing
      }
      try await context.note(choice.name)
      final.name = choice.name
      let taken = try contents.state.withLock { [final] state throws(DownloadError) in
        guard onConflict == .replace || state.published[choice.name] == nil else { return false }
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
    // The artifact shares the bytes of the download's own partial, which is removed next.
    let own = state.partials.reduce(0) { $1.key.id == id ? $0 + $1.value.count : $0 }
    let others = state.partialBytes - own + state.publishedBytes - (replaced?.byteCount ?? 0)
    guard count <= maximumBytes - others, replaced != nil || state.published.count < maximumArtifacts else {
      throw full("publish “\(artifact.name)”")
    }
    state.publishedBytes += count - (replaced?.byteCount ?? 0)
    state.published[artifact.name] = artifact
  }

  /// Whether the artifact is in memory and not yet published.
  public func isStaged(_ artifact: Artifact) -> Bool { artifact.path == nil && kept(artifact) == nil }

  /// What was published as the artifact and is still there.
  private func kept(_ artifact: Artifact) -> Artifact? {
    self[artifact.name].flatMap { $0.isSame(as: artifact) ? $0 : nil }
  }

  /// Whether a published artifact is still there.
  public func contains(_ artifact: Artifact) async -> Bool {
    guard artifact.path == nil else { return await FileStore("/").contains(artifact) }
    return !isStaged(artifact)
  }

  /// With ``ConflictPolicy/reuse``, the artifact of the download's name, when it has the expected size.
  public func existing(for request: DownloadRequest) async throws -> Artifact? {
    guard onConflict == .reuse else { return nil }
    let name = request.destination.name ?? SafeFileName.make(from: nil, url: request.url)
    guard let kept = self[name], request.expectedSize == .unknown || kept.size == request.expectedSize
    else { return nil }
    return kept
  }

  /// Removes a published artifact. No error when there is none.
  ///
  /// - Throws: `DownloadError` with `.permission` or `.storage` for an artifact that a step has put into a file.
  public func remove(_ artifact: Artifact) async throws {
    guard artifact.path == nil else { return try await FileStore("/").remove(artifact) }
    contents.state.withLock { state in take(artifact, from: &state) }
  }

  /// The path itself.
  public func storedPath(for path: String) -> String { path }

  /// The path itself.
  ///
  /// - Throws: `DownloadError` with `.unsafePath` for a path that is not absolute or has `..` in it.
  public func path(forStored storedPath: String) throws -> String {
    guard storedPath.hasPrefix("/"), !PathText.climbs(storedPath) else {
      throw DownloadError(
        .unsafePath, "the path “\(storedPath.prefix(200))” is not plainly absolute: remove the download")
    }
    return storedPath
  }

  func full(_ action: String) -> DownloadError {
    DownloadError(
      .noSpace,
      "no room to \(action): the memory store takes \(maximumBytes) bytes and \(maximumArtifacts) artifacts; "
        + "remove some or raise the limits")
  }
}
