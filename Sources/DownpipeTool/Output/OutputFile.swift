import Downpipe
import Foundation
import Synchronization

/// Standard output or standard error. Each write is complete and unbuffered, and waits for its reader until the process
/// is told to end: see ``WriteDeadline``.
///
/// A write runs on a thread of its own: write(2) cannot be cancelled, but waiting for it can. A non-blocking descriptor
/// is no way out, since other processes share that setting; nor is poll(2), since others may fill the pipe after it.
final class OutputFile: Sendable {
  static let standardOutput = OutputFile(descriptor: STDOUT_FILENO)
  static let standardError = OutputFile(descriptor: STDERR_FILENO)

  /// The reader has closed its end, as `head` does: the command ends without a message.
  struct BrokenPipe: Error {}
  /// The process is told to end, and the reader does not read.
  struct Abandoned: Error {}

  private final class Write: Sendable {
    let end = DispatchSemaphore(value: 0)
    let failure = Mutex<(any Error)?>(nil)
  }

  let descriptor: Int32
  private let deadline: WriteDeadline
  private let queue = DispatchQueue(label: "downpipe.output", qos: .userInitiated)
  /// Set after a write was abandoned: its thread may still hang in it, and nothing may follow half a line.
  private let isAbandoned = Atomic(false)

  /// - Parameter descriptor: Stays open as long as the process.
  init(descriptor: Int32, deadline: WriteDeadline = .ofTheProcess) {
    self.descriptor = descriptor
    self.deadline = deadline
  }

  var isTerminal: Bool { isatty(descriptor) == 1 }

  /// - Throws: ``BrokenPipe``, ``Abandoned``, or ``DownloadError`` with `.storage`.
  func write(_ text: String) throws { try write(Array(text.utf8)) }

  /// - Throws: as ``write(_:)-(String)``.
  func write(_ bytes: [UInt8]) throws {
    if bytes.isEmpty { return }
    if isAbandoned.load(ordering: .relaxed) { throw Abandoned() }
    let write = Write()
    queue.async { [descriptor] in
      do { try writeAll(bytes, to: descriptor) } catch { write.failure.withLock { $0 = error } }
      write.end.signal()
    }
    let start = ContinuousClock.now
    // A signal may set the deadline meanwhile.
    while write.end.wait(timeout: .now() + .milliseconds(20)) == .timedOut {
      guard let end = deadline.end(ofWriteFrom: start), .now >= end else { continue }
      isAbandoned.store(true, ordering: .relaxed)
      throw Abandoned()
    }
    if let failure = write.failure.withLock({ $0 }) { throw failure }
  }

  /// Writes a message to standard error. An error of that has no place left to be shown.
  static func warn(_ message: String) { try? standardError.write("downpipe: \(message.harmless)\n") }

  /// Opens the standard descriptors that the process was started without. Otherwise the ledger could get the number of
  /// standard output, and messages would be written into it.
  static func openMissing() {
    // The lowest free number is the missing one, since those below it are open by now.
    for descriptor: Int32 in 0...2 where fcntl(descriptor, F_GETFD) == -1 { _ = open("/dev/null", O_RDWR) }
  }
}

private func writeAll(_ bytes: [UInt8], to descriptor: Int32) throws {
  var rest = bytes[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    if count >= 0 {
      rest = rest.dropFirst(count)
    } else if errno == EAGAIN {
      // Another process has made the terminal or the pipe non-blocking.
      var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      _ = poll(&wanted, 1, 1000)
    } else if errno == EPIPE {
      throw OutputFile.BrokenPipe()
    } else if errno != EINTR {
      throw DownloadError(.storage, "the output cannot be written: \(String(cString: strerror(errno)))")
    }
  }
}

/// Limits how long writes wait for their readers: not at all until the process is told to end, then half a second in
/// all. So the last lines reach a reader that reads, and a reader that does not read delays the end by half a second.
final class WriteDeadline: Sendable {
  static let ofTheProcess = WriteDeadline()
  static let grace: Duration = .milliseconds(500)
  /// The time that each write has in any case.
  static let least: Duration = .milliseconds(100)

  private let limit = Mutex<ContinuousClock.Instant?>(nil)

  /// Starts the half second; later calls change nothing.
  func start(at now: ContinuousClock.Instant) { limit.withLock { $0 = $0 ?? now + Self.grace } }

  /// When a write is abandoned; `nil` for never.
  func end(ofWriteFrom start: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    limit.withLock { $0 }.map { max($0, start + Self.least) }
  }
}
