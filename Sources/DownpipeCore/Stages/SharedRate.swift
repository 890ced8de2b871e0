/// What a downloader wants of a rate that all downloaders of a ledger share, also on other machines.
///
/// A session of a rate policy names its shared rates in ``RateSession/wants(at:)``. The ledger divides each rate, so that the
/// shares of all downloaders are never more than the rate together.
public struct RateWant: Sendable, Hashable {
  /// What the rate is for, such as a host. Policies with the same ``Stage/id`` and the same key share a rate.
  public var key: String
  /// The rate of all downloaders together. If they name different ones, the smallest one holds.
  public var rate: ByteRate
  /// The number of bytes per second that the transfers of this downloader have used, or would use.
  public var wanted: Int64
  /// The number of bytes per second that they use at most until the next share arrives: the share in effect, or 0.
  ///
  /// A share that has become smaller is free for others when the downloader has said that it uses no more than the smaller
  /// one, or else when the larger one has expired.
  public var held: Int64

  /// Creates a want.
  public init(key: String, rate: ByteRate, wanted: Int64, held: Int64 = 0) {
    self.key = key
    self.rate = rate
    self.wanted = wanted
    self.held = held
  }
}

/// The share of a rate that a ledger has leased to one downloader.
///
/// It is valid for a time and not until a date, because the clocks of two machines differ. The time begins before the
/// ledger was asked. Afterwards the downloader has no share.
public struct RateShare: Sendable, Hashable {
  /// The number of bytes per second; 0 while the shares of others leave nothing.
  public var bytesPerSecond: Int64
  /// How long the share is valid. A downloader that still needs it asks again when a fifth of this time has passed.
  public var validity: Duration

  /// Creates a share.
  public init(bytesPerSecond: Int64, validity: Duration) {
    self.bytesPerSecond = bytesPerSecond
    self.validity = validity
  }
}
