#if AsyncHTTPClient
  import DownpipeCore
  import NIOCore
  import Synchronization

  /// The idle time limit of one transfer.
  ///
  /// Chunks only record the time, because setting a timer for each would cost more than the chunk itself. The timer
  /// checks the recorded time and is set again when it fired early. Time in the sink and time before the body is read
  /// do not count: only the server's silence does.
  final class SilenceWatch: Sendable {
    private let limit: TimeAmount
    private let eventLoop: any EventLoop
    /// The start of the wait for the server, in nanoseconds of the event loop's clock; 0 when not waiting.
    private let since = Atomic<UInt64>(0)
    private let timer = Mutex<(scheduled: Scheduled<Void>?, hasEnded: Bool)>((nil, false))

    init(limit: TimeAmount, eventLoop: any EventLoop) {
      self.limit = limit
      self.eventLoop = eventLoop
    }

    /// Starts to wait for the server; calls `expired` at most once, on the event loop.
    func begin(_ expired: @escaping @Sendable (DownloadError) -> Void) {
      wait()
      check(after: limit, expired)
    }

    /// Starts the wait again.
    func wait() { since.store(NIODeadline.now().uptimeNanoseconds, ordering: .relaxed) }

    /// Suspends the wait.
    func rest() { since.store(0, ordering: .relaxed) }

    /// Cancels the timer.
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
      let seconds = Duration.nanoseconds(limit.nanoseconds).inSeconds
      expired(DownloadError(.timedOut, "the server sent nothing for \(seconds); try again later"))
    }
  }
#endif
