import Foundation
import Synchronization

/// Turns the signals that ask a process to end into an orderly end.
///
/// The first SIGINT, SIGTERM or SIGHUP is reported, so that transfers stop at a checkpoint. Another one, half a second
/// later or more, ends the process at once; what is on disk can be resumed then too. A signal that comes sooner counts
/// with the first: `timeout` signals the process and then its group.
final class Interruption: Sendable {
  /// 128 + SIGINT.
  static let exitStatus: Int32 = 130

  private let signals = Signals()
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  /// Starts to listen.
  init() {
    (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(1))
    for number in [SIGINT, SIGTERM, SIGHUP] {
      // The setting of nohup stays. The other two are obeyed even where a shell ignores them in background jobs.
      if number == SIGHUP, Self.isIgnored(number) { continue }
      #if canImport(Darwin)
        // kqueue reports a signal beside its disposition, which must not end the process.
        signal(number, SIG_IGN)
      #endif
      listen(to: number)
    }
  }

  /// Returns true after the first signal, and false when the task is cancelled.
  func wait() async -> Bool {
    for await _ in stream { return true }
    return false
  }

  private func listen(to number: Int32) {
    let source = DispatchSource.makeSignalSource(signal: number, queue: .global(qos: .userInitiated))
    // The handler keeps the source alive: it listens as long as the process runs.
    source.setEventHandler { [signals, continuation] in
      withExtendedLifetime(source) {
        switch signals.next(at: .now) {
        case .first:
          // A reader that does not read must not delay the end.
          WriteDeadline.ofTheProcess.start(at: .now)
          continuation.yield()
        case .repeated: break
        case .urgent:
          Terminal.restore()
          _exit(Self.exitStatus)
        }
      }
    }
    source.resume()
  }

  /// Tells what each signal means by its time.
  final class Signals: Sendable {
    enum Meaning: Hashable { case first, repeated, urgent }

    private let first = Mutex<ContinuousClock.Instant?>(nil)

    func next(at now: ContinuousClock.Instant) -> Meaning {
      first.withLock { first in
        guard let before = first else {
          first = now
          return .first
        }
        return now - before < .milliseconds(500) ? .repeated : .urgent
      }
    }
  }

  /// Whether the parent process has set a signal to be ignored.
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
