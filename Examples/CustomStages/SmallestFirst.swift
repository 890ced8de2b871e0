import Downpipe

/// A scheduling policy of one's own: what is small goes first, what is of unknown size last.
struct SmallestFirst: SchedulingPolicy {
  func rank(_ context: RankingContext) -> Rank {
    Rank().ascending(context.size.bytes ?? .max).ascending(context.arrival)
  }
}
