// Renaming downloads, and the files of finished downloads.
extension Engine {
  /// Renames a download; the file of a finished download is renamed in its folder.
  func rename(_ id: DownloadID, to name: String) async throws -> DownloadStatus {
    try checkOpen()
    let name = SafeFileName.make(fromTitle: name)
    return try await takeTurns(for: id) { engine in
      try await engine.rankOnce()
      return try await engine.renameInTurn(id, to: name)
    }
  }

  private func renameInTurn(_ id: DownloadID, to name: String) async throws -> TurnResult<DownloadStatus> {
    guard let record = try await record(id) else { throw DownloadError.unknownDownload(id) }
    guard record.phase == .finished, state.slots.runs[id] == nil else {
      return try await change(id) { $0.destination.setName(name) }
    }
    return .over(try await renameFile(of: record, to: name))
  }

  private func renameFile(of record: DownloadRecord, to name: String) async throws -> DownloadStatus {
    let record = await renamed(record)
    guard let stored = record.steps.artifact, stored.path != nil else {
      throw DownloadError(.invalidRequest, "“\(record.id)” has no file to rename: it was kept in memory")
    }
    let artifact = try context.storage.artifact(from: stored)
    if let url = artifact.remoteURL {
      throw DownloadError(
        .invalidRequest, "“\(record.id)” has no file to rename: it is at \(url.redacted), and not on this machine")
    }
    guard await context.storage.contains(artifact) else {
      throw DownloadError(
        .storage, "the file of “\(record.id)” no longer exists or was replaced: add the download again")
    }
    try await keep(RenameNote(name: name), of: record.id)
    return try await moveFile(of: record, artifact, to: name, prior: nil)
  }

  /// Saves a note in the ledger before the file moves: after a crash the next start finishes the rename.
  private func keep(_ note: RenameNote?, of id: DownloadID) async throws {
    // An addition may have asked for another file: the note would be taken for that of a step.
    _ = try await store.update(id, at: time.date) { if $0.phase == .finished { $0.steps.note = note?.stored } }
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
      // If the file has not moved, there is nothing to finish; otherwise the next start finishes the rename.
      if await storage.contains(artifact) { try? await keep(nil, of: id) }
      throw error
    }
    let (old, stored) = (record.steps.artifact, StoredArtifact(moved, in: storage))
    let record: DownloadRecord?
    do {
      record = try await store.update(id, at: time.date) { record in
        record.request.destination.setName(moved.name)
        if record.steps.artifact?.path == old?.path {
          record.steps.artifact = stored
          record.steps.note = nil
        } else if record.earlierArtifact?.path == old?.path {
          // An addition has asked for another file meanwhile, which takes the place of this one.
          record.earlierArtifact = stored
        }
      }
    } catch {
      // The file has moved: the ledger has to say so as soon as it can.
      state.mode.mustFinishRenaming = true
      restLedger()
      throw error
    }
    guard let record else { throw DownloadError.unknownDownload(id) }
    noteChange(of: CollectionOfOne(id))
    return status(of: record)
  }

  /// Finishes the renames that the end of a process, or a failure of the ledger, has interrupted. Called before any other
  /// work.
  func finishRenaming() async {
    state.mode.mustFinishRenaming = false
    guard let records = try? await store.unsettledMoves() else {
      state.mode.mustFinishRenaming = true
      return restLedger()
    }
    for record in records where belongsHere(record) { _ = await renamed(record) }
  }

  /// Finishes an interrupted rename of a record's file, in a turn, and returns the record. If that fails, the record is
  /// unchanged.
  func renamed(_ record: DownloadRecord) async -> DownloadRecord {
    guard record.phase == .finished, let note = record.steps.note.flatMap(RenameNote.init(stored:)),
      let stored = record.steps.artifact, let artifact = try? context.storage.artifact(from: stored),
      (try? await moveFile(of: record, artifact, to: note.name, prior: note)) != nil
    else { return record }
    return (try? await store.record(record.id)) ?? record
  }

  /// The artifact of a finished download if it no longer exists; otherwise `nil`. Not in a turn, because the disk may
  /// not answer.
  func lostArtifact(of record: DownloadRecord) async -> StoredArtifact? {
    var record = record
    if record.steps.note != nil {
      // It was read before or during a rename.
      let id = record.id
      let present = try? await context.mailbox.perform { engine -> DownloadRecord? in
        guard let present = try await engine.store.record(id), present.phase == .finished else { return nil }
        return await engine.renamed(present)
      }
      guard let present = present ?? nil else { return nil }
      record = present
    }
    // An artifact in memory ends with its process and does not count as lost.
    guard let stored = record.steps.artifact, stored.path != nil else { return nil }
    guard let artifact = try? context.storage.artifact(from: stored) else { return stored }
    return await context.storage.contains(artifact) ? nil : stored
  }
}

extension Storage {
  /// The folder of an artifact below the storage's root; `nil` for the root itself and for other places.
  fileprivate func folder(of artifact: Artifact) -> String? {
    guard let stored = artifact.path.map(storedPath(for:)), !stored.hasPrefix("/") else { return nil }
    let parts = stored.split(separator: "/").dropLast()
    return parts.isEmpty ? nil : parts.joined(separator: "/")
  }
}
