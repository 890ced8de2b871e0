/// Sums over downloads: what a list shows at its head.
public struct DownloadTotals: Sendable, Hashable {
  /// How many there are in each phase.
  public var counts: [DownloadState.Phase: Int]
  /// Bytes on disk; cancelled downloads are left out, here and below.
  public var received: Int64
  /// Bytes of those whose size is known, or was promised.
  public var expected: Int64
  /// How many have no known size, and are missing in ``expected``.
  public var unknownSizes: Int
  /// Bytes a second of all that run here together; `nil` when nothing is being transferred.
  public var bytesPerSecond: Double?

  init(_ totals: LedgerTotals) {
    counts = totals.counts
    received = totals.received
    expected = totals.expected
    unknownSizes = totals.unknown
  }
}
