/// How a ledger ranks its downloads, under a name that says whose ranks they are.
///
/// ```swift
/// try await store.rank(by: Ranking(PriorityQueue()))
/// try await store.rank(by: Ranking(name: "smallest first") { Rank().ascending($0.size.bytes ?? .max) })
/// ```
public struct Ranking: Sendable {
  /// What tells these ranks from those of another ranking. The ledger keeps it.
  public var name: String
  /// The rank of a download; the smallest goes first. Pure, cheap, and called inside the ledger's transaction.
  public var rank: @Sendable (RankingContext) -> Rank

  /// Makes a ranking.
  public init(name: String, rank: @escaping @Sendable (RankingContext) -> Rank) {
    self.name = name
    self.rank = rank
  }

  /// The ranking of a policy; its name, its version and what it is set to name the ranks.
  public init(_ policy: some SchedulingPolicy) {
    let set = policy.summary.isEmpty ? "" : " (\(policy.summary))"
    self.init(name: "\(policy.name) \(policy.version)\(set)", rank: policy.rank)
  }

  /// The earliest added first.
  public static let arrival = Ranking(name: "arrival") { Rank().ascending($0.arrival) }
}
