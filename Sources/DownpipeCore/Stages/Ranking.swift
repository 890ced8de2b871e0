/// A function that ranks the downloads of a ledger, with a name that identifies its ranks.
///
/// ```swift
/// try await store.rank(by: Ranking(PriorityQueue()))
/// try await store.rank(by: Ranking(name: "smallest first") { Rank().ascending($0.size.bytes ?? .max) })
/// ```
@_spi(Ledger) public struct Ranking: Sendable {
  /// The name that tells these ranks from those of another ranking. The ledger keeps it.
  public var name: String
  /// Returns the rank of a download; the smallest goes first. It must be pure and cheap: it is called inside the
  /// ledger's transaction.
  public var rank: @Sendable (RankingContext) -> Rank

  /// Creates a ranking.
  public init(name: String, rank: @escaping @Sendable (RankingContext) -> Rank) {
    self.name = name
    self.rank = rank
  }

  /// Creates the ranking of a policy, named by the policy's name, version and summary.
  public init(_ policy: some SchedulingPolicy) {
    let set = policy.summary.isEmpty ? "" : " (\(policy.summary))"
    self.init(name: "\(policy.name) \(policy.version)\(set)", rank: policy.rank)
  }

  /// The ranking by arrival: the download that was added first goes first.
  public static let arrival = Ranking(name: "arrival") { Rank().ascending($0.arrival) }
}
