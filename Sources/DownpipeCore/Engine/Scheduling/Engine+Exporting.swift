extension Engine {
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
