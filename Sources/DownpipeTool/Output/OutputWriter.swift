import Dispatch
import DownpipeCore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Writes to a descriptor on a thread of its own, so that a reader that has stopped reading holds up this thread and
/// nothing else: write(2) cannot be called off, but waiting for it can.
///
/// Making the descriptor non-blocking is no way out, since other processes share the setting; nor is asking poll(2)
/// first, since others may fill the pipe between the question and the write.
final class OutputWriter: Sendable {
  /// A piece of work and its end.
  private final class Piece: Sendable {
    let end = DispatchSemaphore(value: 0)
    let failure = Mutex<(any Error)?>(nil)
  }

  private let descriptor: Int32
  private let patience: Patience
  private let queue = DispatchQueue(label: "downpipe.output", qos: .userInitiated)
  /// Whether a write was given up: its thread may hang in it for ever, and nothing may follow half a line.
  private let isAbandoned = Atomic(false)

  init(descriptor: Int32, patience: Patience) {
    self.descriptor = descriptor
    self.patience = patience
  }

  /// Writes the whole text, or gives up when there is no time left.
  func write(_ text: String) throws {
    guard !isAbandoned.load(ordering: .relaxed) else { throw OutputFile.Abandoned() }
    let piece = Piece()
    queue.async { [descriptor] in
      do { try Self.write(text, to: descriptor) } catch { piece.failure.withLock { $0 = error } }
      piece.end.signal()
    }
    let start = ContinuousClock.now
    // Looked at now and then: a signal may come while this waits.
    while piece.end.wait(timeout: .now() + .milliseconds(20)) == .timedOut {
      guard let end = patience.end(ofWriteBegunAt: start) else { continue }
      if ContinuousClock.now >= end {
        isAbandoned.store(true, ordering: .relaxed)
        throw OutputFile.Abandoned()
      }
    }
    if let failure = piece.failure.withLock({ $0 }) { throw failure }
  }

  private static func write(_ text: String, to descriptor: Int32) throws {
    var text = text
    try text.withUTF8 { try write(UnsafeRawBufferPointer($0), to: descriptor) }
  }

  private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let slice = UnsafeRawBufferPointer(rebasing: rest)
      #if canImport(Glibc)
        let count = Glibc.write(descriptor, slice.baseAddress, slice.count)
      #elseif canImport(Musl)
        let count = Musl.write(descriptor, slice.baseAddress, slice.count)
      #elseif canImport(Darwin)
        let count = Darwin.write(descriptor, slice.baseAddress, slice.count)
      #endif
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        // Another process has set the terminal or the pipe to non-blocking: wait until it takes more.
        var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&wanted, 1, 1000)
      } else if errno == EPIPE {
        throw OutputFile.BrokenPipe()
      } else if errno != EINTR {
        throw DownloadError(.storage, "the output cannot be written: \(String(cString: strerror(errno)))")
      }
    }
  }
}

/// How long writes wait for a reader: without an end, until the process is told to end.
///
/// From then on there is half a second in all, so that the last lines reach a reader that still reads, and the process
/// ends within a second beside one that does not.
final class Patience: Sendable {
  /// That of standard output and standard error.
  static let ofTheProcess = Patience()

  /// The time after the signal in which output is still written.
  static let grace: Duration = .milliseconds(500)
  /// The time that a write has in any case.
  static let least: Duration = .milliseconds(100)

  private let limit = Mutex<ContinuousClock.Instant?>(nil)

  /// The process is told to end. The first time counts.
  func limit(from now: ContinuousClock.Instant) {
    limit.withLock { $0 = $0 ?? now + Self.grace }
  }

  /// When a write is given up; `nil` for never.
  func end(ofWriteBegunAt start: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    limit.withLock { $0 }.map { max($0, start + Self.least) }
  }
}
