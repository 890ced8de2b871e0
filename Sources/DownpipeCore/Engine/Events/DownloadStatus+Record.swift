extension DownloadStatus {
  /// Creates a status from a record and a state, which the record alone does not determine.
  init(
    record: DownloadRecord, state: DownloadState, progress: TransferProgress? = nil, stepProgress: StepProgress? = nil,
    moreFetched: Int64 = 0, in storage: any Storage
  ) {
    self.init(
      id: record.id, request: record.request, state: state,
      progress: progress
        ?? TransferProgress(received: record.checkpoint.ranges.byteCount, total: record.checkpoint.total),
      storedRanges: record.phase == .finished ? ByteRangeSet() : record.checkpoint.ranges, stepProgress: stepProgress,
      attempts: record.attempts, resumedFrom: record.resumedFrom,
      bytesFetched: record.bytesFetched + moreFetched,
      name: (record.phase == .finished ? record.steps.artifact?.name : nil) ?? record.request.destination.finalName
        ?? record.steps.artifact?.name ?? record.request.destination.name
        ?? record.checkpoint.name,
      earlierArtifact: record.artifactInPlace.flatMap { try? storage.artifact(from: $0) },
      verified: record.steps.verified, createdAt: record.createdAt, updatedAt: record.updatedAt)
  }
}
