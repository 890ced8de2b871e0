/// The fields of a record that a save writes.
@_spi(Ledger) public struct RecordFields: OptionSet, Sendable, Hashable {
  /// The bits of the set.
  public let rawValue: Int
  /// Creates a set from its bits.
  public init(rawValue: Int) { self.rawValue = rawValue }

  /// The phase, due time, error and counters. A save that leaves the active phases also releases the lease.
  public static let state = RecordFields(rawValue: 1)
  /// The stored bytes and their representation. When the size of the file has changed, the rank is computed again.
  public static let checkpoint = RecordFields(rawValue: 2)
  /// The results of the steps, the artifact, and how far the download is being refreshed.
  public static let steps = RecordFields(rawValue: 4)
  /// The URL, header fields and head start, as an attempt has changed them.
  ///
  /// Changes that others have made to the request meanwhile are kept, ``DownloadRecord/added`` keeps the request as it
  /// was added, and the rank is computed again.
  public static let link = RecordFields(rawValue: 16)
}
