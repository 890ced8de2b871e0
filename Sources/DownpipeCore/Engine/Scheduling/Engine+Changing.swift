internal import Foundation

// Changing what was asked for, also of what is finished; and handing out what is on disk.
extension Engine {
  // MARK: Updating

  /// Changes the request of a download in one step of the ledger.
  func update(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> DownloadStatus {
    try checkOpen()
    try await rankOnce()
    while true {
      switch try await context.mailbox.perform({ try await $0.change(id, change) }) {
      case .over(let status): return status
      case .wait(let run): try await run.endUnlessCancelled()
      }
    }
  }

  private enum Change: Sendable {
    case over(DownloadStatus)
    case wait(for: Run)
  }

  /// Done by the loop.
  private func change(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> Change {
    guard try await record(id) != nil else { throw DownloadError.unknownDownload(id) }
    guard let run = slots.runs[id] else { return .over(try await updated(id, change)) }
    let old = run.read { $0.request }
    var new = old
    try change(&new)
    try new.check(against: pipeline)
    let destination = new.destination
    // What is being published goes where it was asked for when that began: no run may begin to publish in between.
    let isInTime = run.update { record in
      guard record.phase == .transferring || destination == old.destination else { return false }
      record.request.destination = destination
      return true
    }
    guard isInTime else { return .wait(for: run) }
    do {
      return .over(try await updated(id, change))
    } catch {
      run.update { $0.request.destination = old.destination }
      throw error
    }
  }

  private func updated(
    _ id: DownloadID, _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> DownloadStatus {
    let pipeline = pipeline
    let before = slots.runs[id]?.read { $0.request }
    let record = try await store.update(id, at: time.date) { record in
      let old = record.request
      try change(&record.request)
      guard record.request.id == old.id else {
        throw DownloadError(
          .invalidRequest, "a download keeps its id: add another one instead of “\(record.request.id)”")
      }
      guard record.phase != .finished || record.request.destination == old.destination else {
        throw DownloadError(.invalidRequest, "“\(id)” is finished: rename it instead of changing its destination")
      }
      try record.request.check(against: pipeline)
    }
    guard let record else { throw DownloadError.unknownDownload(id) }
    heed(record, since: before)
    mode.mayLease = true
    if let run = slots.runs[id] {
      if hub.isWatched(id) { run.announce(state: run.status.state) }
      return run.status
    }
    publish(record)
    return status(of: record)
  }

  // MARK: Renaming

  /// Gives a download another name; what is finished is renamed in its folder.
  func rename(_ id: DownloadID, to name: String) async throws -> DownloadStatus {
    try checkOpen()
    try await rankOnce()
    let name = SafeFileName.make(fromTitle: name)
    while true {
      let turn: Change = try await context.mailbox.perform { engine in
        guard let record = try await engine.record(id) else { throw DownloadError.unknownDownload(id) }
        guard record.phase == .finished, engine.slots.runs[id] == nil else {
          return try await engine.change(id) { $0.destination.setName(name) }
        }
        return .over(try await engine.renameFile(of: record, to: name))
      }
      switch turn {
      case .over(let status): return status
      case .wait(let run): try await run.endUnlessCancelled()
      }
    }
  }

  private func renameFile(of record: DownloadRecord, to name: String) async throws -> DownloadStatus {
    let record = await renamed(record)
    guard let stored = record.steps.artifact, stored.path != nil else {
      throw DownloadError(.invalidRequest, "“\(record.id)” has no file that could be renamed: it was kept in memory")
    }
    let artifact = try context.storage.artifact(from: stored)
    guard await context.storage.contains(artifact) else {
      throw DownloadError(
        .storage, "the file of “\(record.id)” is gone, or is another one now: add the download again to fetch it anew")
    }
    try await keep(RenameNote(name: name), of: record.id)
    return try await moveFile(of: record, artifact, to: name, prior: nil)
  }

  /// What is being renamed, and how, is in the ledger before the file moves: after a crash the next start finishes it.
  private func keep(_ note: RenameNote?, of id: DownloadID) async throws {
    _ = try await store.update(id, at: time.date) { $0.steps.note = note?.stored }
  }

  private func moveFile(
    of record: DownloadRecord, _ artifact: Artifact, to name: String, prior: RenameNote?
  ) async throws -> DownloadStatus {
    let storage = context.storage
    let id = record.id
    let processing = ProcessingContext(
      request: record.request, workspace: nil, priorNote: prior?.storageNote, durability: storage.durability,
      wasInterrupted: prior != nil
    ) { [self] note in try await keep(RenameNote(name: name, storageNote: note), of: id) }
    let moved: Artifact
    do {
      moved = try await storage.publish(
        artifact, of: nil, at: .init(directory: storage.folder(of: artifact), name: name), in: processing)
    } catch {
      // Where the file has not moved there is nothing to be finished; otherwise the next start does that.
      if await storage.contains(artifact) { try? await keep(nil, of: id) }
      throw error
    }
    let stored = StoredArtifact(moved, in: storage)
    let record = try await store.update(id, at: time.date) { record in
      record.steps.artifact = stored
      record.steps.note = nil
      record.request.destination.setName(moved.name)
    }
    guard let record else { throw DownloadError.unknownDownload(id) }
    publish(record)
    return status(of: record)
  }

  /// Finishes renaming what the end of the process has interrupted; before anything else is done.
  func finishRenaming() async {
    guard let records = try? await store.unsettledMoves() else { return }
    for record in records where belongsHere(record) { _ = await renamed(record) }
  }

  /// A record whose file was being renamed, with that brought to its end; where it fails the file has the name it has.
  func renamed(_ record: DownloadRecord) async -> DownloadRecord {
    guard record.phase == .finished, let note = record.steps.note.flatMap(RenameNote.init(stored:)),
      let stored = record.steps.artifact, let artifact = try? context.storage.artifact(from: stored),
      (try? await moveFile(of: record, artifact, to: note.name, prior: note)) != nil
    else { return record }
    return (try? await store.record(record.id)) ?? record
  }

  // MARK: Exporting

  /// Copies the bytes that are on disk, with what is known of them.
  func exportPartial(_ id: DownloadID, to path: String) async throws -> PartialExport {
    try checkOpen()
    guard let record = try await record(id) else { throw DownloadError.unknownDownload(id) }
    guard slots.runs[id] == nil, !record.phase.isActive else {
      throw DownloadError(.inUse, "“\(id)” is being transferred: pause it first")
    }
    let count = record.checkpoint.ranges.prefixLength
    guard count > 0, record.phase != .finished else {
      throw DownloadError(
        .invalidRequest,
        record.phase == .finished ? "“\(id)” is finished: its file is there" : "nothing is on disk of “\(id)” yet")
    }
    // Held while it is copied: a run that begins meanwhile waits for it as for another owner.
    let partial = try await context.storage.openPartial(record.partialKey, isNew: false)
    defer { try? partial.close() }
    try await partial.export(to: path, count: count)
    return PartialExport(record, file: path, count: count)
  }
}

extension Storage {
  /// The folder below the root that an artifact lies in; `nil` for the root itself, and for what lies elsewhere.
  fileprivate func folder(of artifact: Artifact) -> String? {
    guard let stored = artifact.path.map(storedPath(for:)), !stored.hasPrefix("/") else { return nil }
    let parts = stored.split(separator: "/").dropLast()
    return parts.isEmpty ? nil : parts.joined(separator: "/")
  }
}

/// What the ledger keeps of a finished download while its file is given another name.
struct RenameNote: Sendable, Hashable {
  /// The name that is asked for.
  let name: String
  /// What the storage has noted.
  var storageNote: String?

  private static let step = "rename"

  init(name: String, storageNote: String? = nil) {
    self.name = name
    self.storageNote = storageNote
  }

  /// Reads what ``stored`` wrote; `nil` for a note of something else.
  init?(stored: String) {
    let outer = StepNote(stored: stored)
    guard outer.step == Self.step else { return nil }
    let inner = StepNote(stored: outer.text)
    guard let name = inner.step else { return nil }
    self.init(name: name, storageNote: inner.text.isEmpty ? nil : inner.text)
  }

  /// The note as the ledger keeps it.
  var stored: String {
    StepNote(step: Self.step, text: StepNote(step: name, text: storageNote ?? "").stored).stored
  }
}
