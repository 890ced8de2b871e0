/// How many downloads may run at once at all downloaders of a ledger together, also on other machines.
///
/// An admission policy names the shared limits of a candidate in ``AdmissionPolicy/sharedLimits(for:)``. The ledger counts:
/// a download counts while it is leased.
public struct SharedLimit: Sendable, Hashable {
  /// What is limited, such as a host. Limits of all downloaders with the same key count the same downloads.
  public var key: String
  /// The most downloads that run at once.
  public var most: Int

  /// Creates a limit. A number below 1 counts as 1.
  public init(key: String, most: Int) {
    self.key = key
    self.most = max(1, most)
  }
}
