// Renaming downloads, and the files of finished downloads.
extension Engine {
  /// Renames a download; the file of a finished download is renamed in its folder.
  nonisolated func rename(_ id: DownloadID, to name: String) async throws -> DownloadStatus {
    let name = SafeFileName.make(fromTitle: name)
    try await rankOnce()
    return try await context.mailbox.call(for: [id]) { _ in { state, _ in state.rename(id, to: name) } }
  }
}

extension Engine {
  /// Finishes interrupted renames before the loop begins: the paths of the files are told then.
  func finishRenaming() async {
    var changes = Changes()
    do {
      for record in try await store.unsettledMoves() { await context.finishRenaming(of: record.id, &changes) }
    } catch {
      changes.due.insert(.renames)
    }
    decide(.changed(changes))
  }
}

extension EngineState {
  fileprivate mutating func rename(_ id: DownloadID, to name: String) -> NextAction<DownloadStatus> {
    .job { [isRunning = slots.runs[id] != nil] context, _ in
      let record = try await context.existing(id)
      guard record.phase == .finished, !isRunning else {
        return { state, _ in
          try state.change(id, { $0.destination.setName(name) }) { state, _ in state.rename(id, to: name) }
        }
      }
      return { _, _ in
        .errand(for: [id]) { context, changes in
          let renamed = try await context.renameFile(of: id, to: name, &changes)
          return { state, instant in .over(state.status(of: renamed, at: instant)) }
        }
      }
    }
  }

  /// Decides when an interrupted rename of a download's file is finished, or cannot be.
  func afterRenaming<Value>(_ id: DownloadID, _ next: @escaping Decision<Value>) -> NextAction<Value> {
    .job { context, _ in
      guard try await context.record(id)?.isBeingRenamed == true else { return next }
      return { _, _ in
        .errand(for: [id]) { context, changes in
          await context.finishRenaming(of: id, &changes)
          return next
        }
      }
    }
  }
}

extension Mailbox {
  /// The record of a download when an interrupted rename of its file is finished, or cannot be.
  /// - Throws: What ``EngineContext/existing(_:)`` throws, and what a call throws.
  func recordAfterRenaming(
    _ id: DownloadID, for ids: Set<DownloadID>, isContinuation: Bool = false
  ) async throws -> DownloadRecord {
    try await call(for: ids, isContinuation: isContinuation) { _ in
      { state, _ in
        state.afterRenaming(id) { _, _ in
          .job { context, _ in
            let record = try await context.existing(id)
            return { _, _ in .over(record) }
          }
        }
      }
    }
  }
}

extension EngineContext {
  fileprivate func renameFile(
    of id: DownloadID, to name: String, _ changes: inout Changes
  ) async throws -> DownloadRecord {
    await finishRenaming(of: id, &changes)
    let record = try await existing(id)
    guard record.phase == .finished else {
      throw DownloadError(.inUse, "“\(id)” was changed meanwhile: rename it again")
    }
    guard let stored = record.steps.artifact, stored.path != nil else {
      throw DownloadError(.invalidRequest, "“\(record.id)” has no file to rename: it was kept in memory")
    }
    let artifact = try storage.artifact(from: stored)
    if let url = artifact.remoteURL {
      throw DownloadError(
        .invalidRequest, "“\(record.id)” has no file to rename: it is at \(url.redacted), and not on this machine")
    }
    guard await storage.mayTell(of: stored, record) else {
      throw DownloadError(
        .invalidRequest, "the file of “\(record.id)” is in the storage of another downloader: rename it there")
    }
    guard await storage.contains(artifact) else {
      throw DownloadError(
        .storage, "the file of “\(record.id)” no longer exists or was replaced: add the download again")
    }
    guard try await keep(RenameNote(name: name), of: record.id) else {
      throw DownloadError(.inUse, "“\(id)” was changed meanwhile: rename it again")
    }
    return try await moveFile(of: record, artifact, to: name, prior: nil, &changes)
  }

  /// Saves a note in the ledger before the file moves: after a crash the next start finishes the rename.
  /// - Returns: Whether the download is still finished. Otherwise the note would be taken for that of a step.
  private func keep(_ note: RenameNote?, of id: DownloadID) async throws -> Bool {
    let record = try await store.update(id, at: time.date) { if $0.phase == .finished { $0.steps.note = note?.stored } }
    return record?.phase == .finished
  }

  private func moveFile(
    of record: DownloadRecord, _ artifact: Artifact, to name: String, prior: RenameNote?, _ changes: inout Changes
  ) async throws -> DownloadRecord {
    let id = record.id
    let processing = ProcessingContext(
      request: record.request, workspace: nil, priorNote: prior?.storageNote, durability: storage.durability,
      wasInterrupted: prior != nil
    ) { [self] note in _ = try await keep(RenameNote(name: name, storageNote: note), of: id) }
    let moved: Artifact
    do {
      moved = try await storage.publish(
        artifact, of: nil, at: .init(directory: storage.folder(of: artifact), name: name), in: processing)
    } catch {
      // If the file has not moved, there is nothing to finish; otherwise the next start finishes the rename.
      if await storage.contains(artifact) { _ = try? await keep(nil, of: id) }
      throw error
    }
    let old = record.steps.artifact
    var renamed = StoredArtifact(moved, in: storage)
    renamed.location = old?.location
    let stored = renamed
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
      changes.due.insert(.renames)
      changes.mustRest = true
      throw error
    }
    guard let record else { throw DownloadError.unknownDownload(id) }
    changes.ids.append(id)
    return record
  }

  /// Finishes a rename that the end of a process, or a failure of the ledger, has interrupted, on an errand. If that fails,
  /// the record is unchanged.
  func finishRenaming(of id: DownloadID, _ changes: inout Changes) async {
    let found: DownloadRecord?
    // Where the disk cannot be reached, the next start tries again.
    do { _ = try storage.location } catch { return }
    do { found = try await record(id) } catch {
      changes.due.insert(.renames)
      return changes.mustRest = true
    }
    guard let record = found, record.isBeingRenamed, let note = record.steps.note.flatMap(RenameNote.init(stored:)),
      let stored = record.steps.artifact, let artifact = try? storage.artifact(from: stored)
    else { return }
    _ = try? await moveFile(of: record, artifact, to: note.name, prior: note, &changes)
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
