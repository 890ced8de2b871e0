/// The number of downloads in each phase, and the sums of their bytes.
///
/// Cancelled downloads are counted in ``counts`` and add no bytes.
public struct DownloadTotals: Sendable, Hashable {
  /// The number of downloads in each phase; phases without downloads are left out.
  public var counts: [DownloadState.Phase: Int]
  /// The received bytes: the sizes of finished files, and the stored bytes of all other downloads.
  public var received: Int64
  /// The sum of the known sizes. The size of a download is that of its finished file, or else the size sent by the
  /// server, or else the request's expected size or size hint.
  public var expected: Int64
  /// The number of downloads without a known size. ``expected`` does not include them.
  public var unknownSizes: Int
  /// The speed of all transfers of this downloader, in bytes per second; `nil` when no transfer is running. A ledger
  /// leaves it `nil`.
  public var bytesPerSecond: Double?

  /// Creates totals.
  public init(
    counts: [DownloadState.Phase: Int] = [:], received: Int64 = 0, expected: Int64 = 0, unknownSizes: Int = 0,
    bytesPerSecond: Double? = nil
  ) {
    self.counts = counts
    self.received = received
    self.expected = expected
    self.unknownSizes = unknownSizes
    self.bytesPerSecond = bytesPerSecond
  }
}

extension DownloadTotals {
  /// The received share of all files, from 0 to 1; `nil` while a size is unknown, and when there are no downloads.
  public var fraction: Double? {
    guard unknownSizes == 0, !counts.isEmpty else { return nil }
    return expected == 0 ? 1 : min(1, Double(received) / Double(expected))
  }

  /// The remaining time at the present speed, if all downloads run; `nil` while it cannot be computed.
  public var timeRemaining: Duration? {
    guard unknownSizes == 0, let bytesPerSecond, bytesPerSecond > 0 else { return nil }
    return .seconds(min(Double(max(0, expected.addingSaturated(-received))) / bytesPerSecond, 1e9))
  }

  /// Replaces what the ledger has of a download with what its run knows: the ledger has the last checkpoint.
  package mutating func replace(_ saved: DownloadRecord, by current: DownloadRecord, received bytes: Int64) {
    received = received.addingSaturated(bytes - onDisk(saved))
    switch (size(of: saved), size(of: current)) {
    case (let old?, let new?): expected = expected.addingSaturated(new - old)
    case (nil, let new?):
      expected = expected.addingSaturated(new)
      unknownSizes -= 1
    case (let old?, nil):
      expected = expected.addingSaturated(-old)
      unknownSizes += 1
    case (nil, nil): break
    }
  }

  /// Adds the bytes of a download.
  package mutating func add(_ record: DownloadRecord) {
    guard record.phase != .cancelled else { return }
    let total = size(of: record)
    received = received.addingSaturated(record.phase == .finished ? total ?? onDisk(record) : onDisk(record))
    if let total { expected = expected.addingSaturated(total) } else { unknownSizes += 1 }
  }

  private func size(of record: DownloadRecord) -> Int64? {
    let size = record.phase == .finished ? record.steps.artifact?.size : nil
    return size ?? record.checkpoint.total.bytes ?? record.request.likelySize.bytes
  }

  private func onDisk(_ record: DownloadRecord) -> Int64 { record.checkpoint.ranges.byteCount }
}
