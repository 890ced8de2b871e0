/// How many downloads there are, and their bytes. What was cancelled is counted and adds no bytes.
public struct LedgerTotals: Sendable, Hashable {
  /// How many are in each phase; phases without any are left out.
  public var counts: [DownloadState.Phase: Int]
  /// The bytes there are: the size of what is finished, of the rest what is on disk.
  public var received: Int64
  /// The bytes there will be, of the downloads whose size is known: what is finished counts as it is, of the rest the
  /// size that the server has said, else the one that was asked for.
  public var expected: Int64
  /// How many downloads are missing in ``expected``, because nothing says how large they are.
  public var unknown: Int

  /// Makes totals.
  public init(counts: [DownloadState.Phase: Int] = [:], received: Int64 = 0, expected: Int64 = 0, unknown: Int = 0) {
    self.counts = counts
    self.received = received
    self.expected = expected
    self.unknown = unknown
  }
}

extension LedgerTotals {
  /// Adds the bytes of a download.
  package mutating func add(_ record: DownloadRecord) {
    guard record.phase != .cancelled else { return }
    let size = record.phase == .finished ? record.steps.artifact?.size : nil
    let total = size ?? record.checkpoint.total.bytes ?? record.request.likelySize.bytes
    received = received.addingSaturated(record.phase == .finished ? total ?? onDisk(record) : onDisk(record))
    if let total { expected = expected.addingSaturated(total) } else { unknown += 1 }
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
