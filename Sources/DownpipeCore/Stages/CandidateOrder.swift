/// An order of groups of waiting downloads, which goes before the order of rank.
public struct CandidateOrder: Sendable {
  /// Returns the group of a candidate, whose size is always unknown. It must be pure and cheap.
  public var group: @Sendable (Candidate) -> String
  /// Returns the place of a group: the smallest goes first, and of equal ones the group whose first download has the
  /// smallest rank.
  ///
  /// The place of a group can grow with each download that starts, and never falls. The function must be cheap, because
  /// it is called inside the ledger's transaction.
  public var precedence: @Sendable (String) -> UInt64

  /// Creates an order.
  public init(group: @escaping @Sendable (Candidate) -> String, precedence: @escaping @Sendable (String) -> UInt64) {
    self.group = group
    self.precedence = precedence
  }
}
