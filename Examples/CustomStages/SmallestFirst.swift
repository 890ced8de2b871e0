import Downpipe

/// A custom scheduling policy: small downloads first, downloads of unknown size last.
struct SmallestFirst: SchedulingPolicy {
  func rank(_ context: RankingContext) -> Rank {
    Rank().ascending(context.size.bytes ?? .max).ascending(context.arrival)
  }
}
