import DownpipeCore
import DownpipeTesting
import Foundation

/// A follower that keeps what it takes.
final class FollowerRecorder: TransferFollower {
  private let kept = Watched<[UInt8]>([])
  private let isBlocked: Watched<Bool>
  private let blocking = DispatchSemaphore(value: 0)
  private let limit: Int

  /// - Parameters:
  ///   - limit: The number of bytes after which it throws.
  ///   - isBlocked: Whether the first call blocks until ``unblock()``.
  init(limit: Int = .max, isBlocked: Bool = false) {
    self.limit = limit
    self.isBlocked = Watched(isBlocked)
  }

  var bytes: [UInt8] { kept.value }

  /// Waits until it has taken a number of bytes.
  func taken(atLeast count: Int) async { await kept.wait { $0.count >= count } }

  func unblock() { blocking.signal() }

  func take(_ bytes: RawSpan) throws {
    let new = bytes.withUnsafeBytes { [UInt8]($0) }
    let count = kept.update { kept in
      kept += new
      return kept.count
    }
    let mustWait = isBlocked.update { isBlocked in
      defer { isBlocked = false }
      return isBlocked
    }
    if mustWait { blocking.wait() }
    if count > limit { throw DownloadError(.processing, "too many bytes") }
  }
}

/// A step that keeps its followers, and what they had taken when it was called.
final class FollowingStep: PostProcessor {
  let name: String
  private let make: @Sendable () -> FollowerRecorder?
  private let made = Watched<[FollowerRecorder]>([])
  private let found = Watched<[[UInt8]?]>([])
  private let offered = Watched<[ProcessingContext]>([])

  init(name: String = "Follow", _ make: @escaping @Sendable () -> FollowerRecorder? = { FollowerRecorder() }) {
    self.name = name
    self.make = make
  }

  /// The followers, in the order of their transfers.
  var followers: [FollowerRecorder] { made.value }
  /// For each call, the bytes that the follower in the context had taken.
  var results: [[UInt8]?] { found.value }
  /// The contexts in which a follower was asked for.
  var contexts: [ProcessingContext] { offered.value }

  /// Waits for a follower.
  func follower(_ index: Int = 0) async throws -> FollowerRecorder {
    await made.wait { $0.count > index }
    try Task.checkCancellation()
    return made.value[index]
  }

  func follower(in context: ProcessingContext) -> (any TransferFollower)? {
    offered.update { $0.append(context) }
    let follower = make()
    if let follower { made.update { $0.append(follower) } }
    return follower
  }

  func process(_ input: File, in context: ProcessingContext) async throws -> File {
    let result = (context.follower as? FollowerRecorder)?.bytes
    found.update { $0.append(result) }
    return input
  }
}
