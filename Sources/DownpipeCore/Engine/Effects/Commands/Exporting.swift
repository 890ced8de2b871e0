extension Engine {
  /// Copies the bytes on disk to a new file, and returns it with the representation of the bytes.
  func exportPartial(_ id: DownloadID, to path: String) async throws -> PartialExport {
    try checkOpen()
    let record = try await context.existing(id)
    guard state.slots.runs[id] == nil, !record.phase.isActive else {
      throw DownloadError(.inUse, "“\(id)” is being transferred: pause it first")
    }
    let count = record.partialRanges.prefixLength
    guard count > 0, record.phase != .finished else {
      throw DownloadError(
        .invalidRequest,
        record.phase == .finished ? "“\(id)” is finished: use its file" : "“\(id)” has no bytes on disk yet")
    }
    // The partial is open while it is copied: a run that begins meanwhile waits for it as for another owner.
    let partial = try await context.storage.openPartial(record.partialKey, isNew: false)
    defer { try? partial.close() }
    try await partial.export(to: path, count: count)
    return PartialExport(record, file: path, count: count)
  }
}
