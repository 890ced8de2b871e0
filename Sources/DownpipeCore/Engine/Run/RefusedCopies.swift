internal import Synchronization

/// A file that a run has put in its place, and whose outcome the ledger has refused: another owner has the download.
struct RefusedCopy: Sendable {
  /// What becomes of a copy.
  enum Fate: Sendable {
    case kept, removed, undecided
  }

  /// The id and generation of the download.
  let key: PartialKey
  let artifact: Artifact
  /// The path below the root of the storage, as the ledger would have it.
  let path: String
  /// The location of the storage; `nil` if it is not known.
  let location: String?

  /// Decides by what the ledger says of the download by now; `nil` if it has none.
  func fate(_ record: DownloadRecord?) -> Fate {
    // It may have been saved before, and the user has removed the download and kept its file.
    guard let record, record.generation == key.generation else { return .kept }
    switch record.phase {
    // The other owner may have the same folder: it then finds the file there, and finishes the download with it.
    case .waiting, .transferring, .processing, .paused, .failed: return .undecided
    case .finished, .cancelled: return record.mayHaveFile(at: path, of: location) ? .kept : .removed
    }
  }
}

extension StoredArtifact {
  /// Whether a step has put the file outside of the storage, into a folder that storages at other locations may have, too, perhaps
  /// under another path.
  var isOutside: Bool { path.map { $0.hasPrefix("/") || $0.hasPrefix("~/") } ?? false }
}

extension DownloadRecord {
  /// The artifacts that the download has or may have, here or elsewhere.
  var files: [StoredArtifact] { [steps.artifact, earlierArtifact].compactMap { $0 } + leftArtifacts }

  /// Whether one of the download's files may be at a path in the storage at a location.
  fileprivate func mayHaveFile(at path: String, of place: String?) -> Bool {
    return files.contains { file in
      if file.isOutside { return true }
      guard file.path == path else { return false }
      guard let place, let other = file.location ?? location else { return true }
      return place == other
    }
  }
}

/// The copies of downloads that other owners have and have not finished.
final class RefusedCopies: Sendable {
  /// The most that are kept. Further ones stay on the disk.
  private static let most = 10_000

  private let copies = Mutex<[RefusedCopy]>([])

  var isEmpty: Bool { copies.withLock { $0.isEmpty } }

  func add(_ more: [RefusedCopy]) {
    copies.withLock { copies in
      let room = max(0, Self.most - copies.count)
      copies += more.prefix(room)
    }
  }

  /// Removes and returns all.
  func takeAll() -> [RefusedCopy] {
    copies.withLock { copies in
      defer { copies = [] }
      return copies
    }
  }
}

extension EngineContext {
  /// Removes those of the copies that are kept for later.
  func removeRefusedCopies() async { await removeCopies(refusedCopies.takeAll()) }

  /// Removes copies of downloads that have ended, if no record has them. The others are kept for later, all if the ledger does
  /// not answer.
  func removeCopies(_ copies: [RefusedCopy]) async {
    guard !copies.isEmpty else { return }
    guard let found = try? await store.records(of: copies.map(\.key.id)) else { return refusedCopies.add(copies) }
    let records = Dictionary(found.map { ($0.id, $0) }) { $1 }
    var useless: [RefusedCopy] = []
    for copy in copies {
      switch copy.fate(records[copy.key.id]) {
      case .kept: break
      case .undecided: refusedCopies.add([copy])
      case .removed: useless.append(copy)
      }
    }
    guard !useless.isEmpty else { return }
    // Another download may have finished with the file.
    guard let claimed = try? await paths(claimedAmong: Set(useless.map(\.path))) else {
      return refusedCopies.add(useless)
    }
    // What cannot be removed stays, as after a crash.
    for copy in useless where !claimed.contains(copy.path) { try? await storage.remove(copy.artifact) }
  }

  /// Those of some stored paths at which, or in a folder at which, a download may have a file, wherever that is; but for the
  /// downloads of which ``RefusedCopy/fate(_:)`` has judged.
  /// - Parameter canStop: Whether it ends when the downloader stops.
  /// - Throws: Errors of the ledger; `.shutDown`.
  func paths(claimedAmong paths: Set<String>, canStop: Bool = false) async throws -> Set<String> {
    var claimed: Set<String> = []
    guard !paths.isEmpty else { return claimed }
    try await forEachPage { records in
      if canStop, stopsErrands.load(ordering: .relaxed) { throw DownloadError.shutDown }
      for record in records {
        for file in record.files {
          let found = file.path?.withFolders.filter(paths.contains) ?? []
          if !found.isEmpty, await storage.isPlace(of: file, record) { claimed.formUnion(found) }
        }
      }
    }
    return claimed
  }
}

extension Run {
  /// Notes a file that is in its final place, as it is now.
  ///
  /// Only a file that the storage can tell from another one at its path is removed, and no folder: the user may have put
  /// something into it.
  func notePlaced(_ artifact: Artifact) {
    guard artifact.kind == .file, artifact.identity != nil, !artifact.isReused else { return }
    // One that has replaced an earlier file is all that this storage has.
    if read({ $0.earlierArtifact == nil }) { findings.withLock { $0.placed.append(artifact) } }
  }

  /// The files that the run has put in their places, for the case that its outcome is refused.
  ///
  /// What a step has put outside of the storage is not among them: the other owner may have found it there.
  var refusedCopies: [RefusedCopy] {
    let place = location ?? read { $0.location }
    let placed = findings.withLock { $0.placed }
    return placed.compactMap { artifact in
      let stored = stored(artifact)
      guard let path = stored.path, !stored.isOutside else { return nil }
      return RefusedCopy(key: key, artifact: artifact, path: path, location: place)
    }
  }
}
