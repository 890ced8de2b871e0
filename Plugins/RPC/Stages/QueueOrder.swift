public import DownpipeCore
import Foundation
import Synchronization

/// A policy that starts the download with the highest priority first, and downloads of the same priority in an order that
/// users change.
///
/// The position of a download is a number among the request's metadata (``metadataKey``); downloads without one are ordered
/// by the time at which they were added. ``RPCServer`` moves downloads by changing the number.
public struct QueueOrder: SchedulingPolicy, Hashable {
  /// The key of the position.
  public static let metadataKey = "rpc.position"

  /// Creates the policy.
  public init() {}

  /// Returns a rank by priority and position, then by arrival.
  public func rank(_ context: RankingContext) -> Rank {
    Rank().descending(context.priority)
      .ascending(Self.position(context.metadata, createdAt: context.createdAt))
      .appending(UInt64(max(0, context.arrival)) & 0xFFFF_FFFF_FFFF, bits: 48)
  }

  /// Between two downloads that were added one after the other there is room for this many moves.
  static let step: Int64 = 1 << 10

  static func position(_ metadata: [String: String], createdAt: Date) -> Int64 {
    if let text = metadata[metadataKey], let position = Int64(text) { return position }
    return position(of: createdAt)
  }

  /// The position of a download that was added at a time: later ones are behind it.
  static func position(of date: Date) -> Int64 {
    let microseconds = date.timeIntervalSince1970 * 1_000_000
    // NaN compares as false and counts as 1970.
    return microseconds > 0 ? Int64(min(microseconds, 8e15)) * step : 0
  }
}

extension DownloadRequest {
  var queuePosition: Int64? {
    get { metadata[QueueOrder.metadataKey].flatMap { Int64($0) } }
    set { metadata[QueueOrder.metadataKey] = newValue.map { String($0) } }
  }
}

extension DownloadStatus {
  var queuePosition: Int64 { QueueOrder.position(request.metadata, createdAt: createdAt) }
}

/// Gives new downloads positions behind all others.
final class QueueEnd: Sendable {
  private let last = Atomic<Int64>(0)

  /// - Parameter now: The time at which the download is added.
  func next(at now: Date) -> Int64 {
    var old = last.load(ordering: .relaxed)
    while true {
      let new = max(QueueOrder.position(of: now), old + QueueOrder.step)
      let (exchanged, original) = last.weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
      if exchanged { return new }
      old = original
    }
  }
}
