import DownpipeCore
import NIOCore
import Synchronization

/// The idle limit of one exchange.
///
/// Chunks only note the time they came: a timer that were set anew for each would cost more than the chunk. The
/// timer looks at that note, and goes off again when it was early. Its own clock stops while the sink works or
/// nobody reads, so that only the server's silence counts.
final class SilenceWatch: Sendable {
  private let limit: TimeAmount
  private let eventLoop: any EventLoop
  /// When the wait for the server began, in nanoseconds of the event loop's clock; 0 while nobody waits for it.
  private let since = Atomic<UInt64>(0)
  private let timer = Mutex<(scheduled: Scheduled<Void>?, hasEnded: Bool)>((nil, false))

  init(limit: TimeAmount, eventLoop: any EventLoop) {
    self.limit = limit
    self.eventLoop = eventLoop
  }

  /// Begins to wait for the server; `expired` is called once at most, on the event loop.
  func begin(_ expired: @escaping @Sendable (DownloadError) -> Void) {
    wait()
    check(after: limit, expired)
  }

  /// It is the server's turn, from now on.
  func wait() { since.store(NIODeadline.now().uptimeNanoseconds, ordering: .relaxed) }

  /// It is not the server's turn.
  func rest() { since.store(0, ordering: .relaxed) }

  /// It is over.
  func end() {
    timer.withLock { timer in
      timer.scheduled?.cancel()
      timer = (nil, true)
    }
  }

  private func check(after time: TimeAmount, _ expired: @escaping @Sendable (DownloadError) -> Void) {
    timer.withLock { timer in
      guard !timer.hasEnded else { return }
      timer.scheduled = eventLoop.scheduleTask(in: time) { self.check(expired) }
    }
  }

  private func check(_ expired: @escaping @Sendable (DownloadError) -> Void) {
    let since = since.load(ordering: .relaxed)
    guard since > 0 else { return check(after: limit, expired) }
    let left = NIODeadline.uptimeNanoseconds(since) + limit - .now()
    guard left <= .zero else { return check(after: left, expired) }
    let seconds = Double(limit.nanoseconds) / 1e9
    expired(
      DownloadError(
        .timedOut, "the server sent nothing for \(seconds) s; try again later, or raise the source's idleTimeLimit"))
  }
}
