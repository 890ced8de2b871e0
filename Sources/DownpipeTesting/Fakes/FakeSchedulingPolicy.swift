public import DownpipeCore

/// A scheduling policy made of a closure; it records what it was asked.
///
/// ```swift
/// let shortestFirst = FakeSchedulingPolicy { Rank().ascending($0.size.bytes ?? .max) }
/// ```
public final class FakeSchedulingPolicy: SchedulingPolicy {
  private let ranking: @Sendable (RankingContext) -> Rank
  private let asked = Watched<[RankingContext]>([])

  /// Makes a policy; first come, first served, unless a closure says otherwise.
  public init(
    _ ranking: @escaping @Sendable (RankingContext) -> Rank = { Rank().ascending($0.arrival) }
  ) {
    self.ranking = ranking
  }

  /// What was ranked, in order.
  public var contexts: [RankingContext] { asked.value }

  /// Asks the closure.
  public func rank(_ context: RankingContext) -> Rank {
    asked.update { $0.append(context) }
    return ranking(context)
  }
}
