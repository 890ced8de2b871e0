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
  /// Returns the sum, or the nearest representable number on overflow.
  package func addingSaturated(_ other: Int64) -> Int64 {
    let (sum, overflows) = addingReportingOverflow(other)
    return overflows ? (other > 0 ? .max : .min) : sum
  }
}
