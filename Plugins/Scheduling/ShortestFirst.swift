public import DownpipeCore

/// A policy that starts the smallest file first, so that most downloads finish early.
///
/// ```swift
/// ShortestFirst()
/// ShortestFirst(assuming: .max)      // files of unknown size go last
/// ```
/// The size is the one that the server has stated. Before its first reply, it is the request's `expectedSize`, or else
/// its `sizeHint`. A download that has run and waits again is ranked by the size learned meanwhile; it does not matter
/// how many bytes are on disk. A file whose size is not known ranks by ``assumedSize``. Files of the same size start in
/// the order in which they were added.
///
/// It ignores priorities. A continuous stream of small files holds back all larger ones.
public struct ShortestFirst: SchedulingPolicy, Hashable {
  /// The size in bytes by which files of unknown size rank.
  public let assumedSize: Int64

  /// Creates a policy for the order of size.
  ///
  /// - Parameter assumedSize: The size in bytes by which files of unknown size rank, 16 MiB by default. A negative size
  ///   counts as 0.
  public init(assuming assumedSize: Int64 = 16 << 20) { self.assumedSize = max(0, assumedSize) }

  /// The assumed size as text.
  public var summary: String {
    assumedSize == .max ? "unknown sizes last" : "unknown sizes count as \(assumedSize) bytes"
  }

  /// Returns a rank by size, then by arrival.
  public func rank(_ context: RankingContext) -> Rank {
    Rank().ascending(context.size.bytes ?? assumedSize).ascending(context.arrival)
  }
}

extension SchedulingPolicy where Self == ShortestFirst {
  /// The order of size, the smallest first; a file of unknown size counts as 16 MiB.
  public static var shortestFirst: ShortestFirst { ShortestFirst() }

  /// The order of size, the smallest first; a file of unknown size counts as `assumedSize` bytes.
  public static func shortestFirst(assuming assumedSize: Int64) -> ShortestFirst {
    ShortestFirst(assuming: assumedSize)
  }
}
