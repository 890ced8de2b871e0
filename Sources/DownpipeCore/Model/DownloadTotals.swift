/// The number of downloads in each phase, and sums of their bytes: what a list shows at its head.
///
/// Cancelled downloads are counted in ``counts`` and add no bytes.
public struct DownloadTotals: Sendable, Hashable {
  /// The number of downloads in each phase; phases without downloads are left out.
  public var counts: [DownloadState.Phase: Int]
  /// The bytes received: the sizes of finished files, and what the checkpoints of all others hold.
  public var received: Int64
  /// The sum of the known sizes: of finished files, else the size that the server announced, else the request's.
  public var expected: Int64
  /// The number of downloads without a known size; they are missing in ``expected``.
  public var unknownSizes: Int
  /// The speed of all transfers of this downloader together, in bytes a second; `nil` while there is none, and in totals
  /// that come from a ledger.
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
  /// Adds the bytes of a download.
  package mutating func add(_ record: DownloadRecord) {
    guard record.phase != .cancelled else { return }
    let size = record.phase == .finished ? record.steps.artifact?.size : nil
    let total = size ?? record.checkpoint.total.bytes ?? record.request.likelySize.bytes
    received = received.addingSaturated(record.phase == .finished ? total ?? onDisk(record) : onDisk(record))
    if let total { expected = expected.addingSaturated(total) } else { unknownSizes += 1 }
  }

  private func onDisk(_ record: DownloadRecord) -> Int64 { record.checkpoint.ranges.byteCount }
}

extension Int64 {
  /// The sum; the largest number where that is too small.
  package func addingSaturated(_ other: Int64) -> Int64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? (other > 0 ? .max : .min) : sum
  }
}
