public import DownpipeCore

/// A scheduling policy that calls a closure and records its calls.
///
/// ```swift
/// let shortestFirst = FakeSchedulingPolicy { Rank().ascending($0.size.bytes ?? .max) }
/// ```
public final class FakeSchedulingPolicy: SchedulingPolicy {
  private let ranking: @Sendable (RankingContext) -> Rank
  private let asked = Watched<[RankingContext]>([])

  /// Creates a policy that calls the closure; without one it ranks by arrival.
  public init(
    _ ranking: @escaping @Sendable (RankingContext) -> Rank = { Rank().ascending($0.arrival) }
  ) {
    self.ranking = ranking
  }

  /// The contexts so far, in order.
  public var contexts: [RankingContext] { asked.value }

  /// Calls the closure.
  public func rank(_ context: RankingContext) -> Rank {
    asked.update { $0.append(context) }
    return ranking(context)
  }
}
