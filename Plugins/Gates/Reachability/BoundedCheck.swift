import Dispatch
import DownpipeCore
import Synchronization

/// Runs a check that blocks a thread, and does not wait longer for it than allowed.
///
/// A resolver can block for half a minute, and cannot be cancelled. Its thread ends by itself; until then, no other check
/// starts, so that there is one thread at most.
struct BoundedCheck: Sendable {
  private final class Thread: Sendable {
    let isBusy = Atomic(false)
    let queue = DispatchQueue(label: "downpipe.host-check", qos: .utility)
  }

  private let time: any TimeSource
  private let thread = Thread()
  private let body: @Sendable () throws -> Void

  init(time: any TimeSource, _ body: @escaping @Sendable () throws -> Void) {
    self.time = time
    self.body = body
  }

  /// Runs the check.
  ///
  /// - Returns: why it failed, in a few words; `nil` when it succeeded.
  /// - Throws: `CancellationError`.
  func failure(within limit: Duration) async throws -> String? {
    let silence = "did not answer within \(limit.components.seconds) s"
    guard thread.isBusy.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    else { return silence }
    let (results, continuation) = AsyncStream.makeStream(of: String?.self)
    thread.queue.async { [thread, body] in
      let result = Result { try body() }
      thread.isBusy.store(false, ordering: .releasing)
      switch result {
      case .success: continuation.yield(nil)
      case .failure(let error): continuation.yield((error as? DownloadError)?.message ?? "\(error)")
      }
    }
    return try await withThrowingTaskGroup(of: String?.self) { group in
      group.addTask {
        for await result in results { return result }
        throw CancellationError()
      }
      group.addTask { [time] in
        try await time.sleep(for: limit)
        return silence
      }
      defer { group.cancelAll() }
      guard let first = try await group.next() else { throw CancellationError() }
      return first
    }
  }
}
