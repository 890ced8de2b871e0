import Dispatch
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Turns the signals that ask a process to end into a wish to end in good order.
///
/// The first SIGINT, SIGTERM or SIGHUP is reported, so that transfers stop at a checkpoint. Another one, half a second
/// later or more, ends the process at once: what is on disk can be resumed then too. One that comes sooner is the same
/// wish: `timeout` signals the process and then its group, and somebody's finger may bounce.
final class Interruption: Sendable {
  /// The exit status of an interrupted command: 128 + SIGINT.
  static let exitStatus: Int32 = 130

  private let wishes = Wishes()
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  /// Begins to listen.
  init() {
    (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1))
    // A reader that goes away is seen by the write that fails.
    signal(SIGPIPE, SIG_IGN)
    // A limit on the size of files is an error of the write that meets it.
    signal(SIGXFSZ, SIG_IGN)
    for number in [SIGINT, SIGTERM, SIGHUP] {
      // What nohup has set stays. The other two are obeyed even where a shell has them ignored in background jobs.
      if number == SIGHUP, Self.isIgnored(number) { continue }
      #if canImport(Darwin)
        // kqueue reports a signal beside its disposition, so that the disposition must not end the process.
        signal(number, SIG_IGN)
      #endif
      listen(to: number)
    }
  }

  /// Returns when somebody wants the process to end, or when the task is cancelled.
  /// - Returns: whether somebody wants it to end.
  func wait() async -> Bool {
    for await _ in stream { return true }
    return false
  }

  private func listen(to number: Int32) {
    let source = DispatchSource.makeSignalSource(signal: number, queue: .global(qos: .userInitiated))
    // The handler keeps the source alive: it listens for as long as the process runs.
    source.setEventHandler { [wishes, continuation] in
      withExtendedLifetime(source) {
        switch wishes.another(at: .now) {
        case .first:
          // A reader that has stopped reading must not hold up the end.
          Patience.ofTheProcess.limit(from: .now)
          continuation.yield()
        case .same: break
        case .urgent:
          Terminal.restore()
          _exit(Self.exitStatus)
        }
      }
    }
    source.resume()
  }

  /// Tells the wishes to end apart.
  final class Wishes: Sendable {
    /// What a signal means.
    enum Meaning: Hashable { case first, same, urgent }

    private let firstOne = Mutex<ContinuousClock.Instant?>(nil)

    /// What a signal at a time means.
    func another(at now: ContinuousClock.Instant) -> Meaning {
      firstOne.withLock { first in
        guard let before = first else {
          first = now
          return .first
        }
        return now - before < .milliseconds(500) ? .same : .urgent
      }
    }
  }

  /// Whether the process that started this one has a signal ignored.
  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return false }
    #if canImport(Darwin)
      let handler = action.__sigaction_u.__sa_handler
    #else
      let handler = action.__sigaction_handler.sa_handler
    #endif
    // SIG_IGN is the address 1, which is no function that could be compared.
    return unsafeBitCast(handler, to: Int.self) == 1
  }
}
