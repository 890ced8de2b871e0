import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Standard output or standard error: every write is complete and unbuffered.
///
/// A write waits for the reader for as long as it takes, until the process is told to end; see ``Patience``.
struct OutputFile: Sendable {
  /// Standard output.
  static let standardOutput = OutputFile(descriptor: STDOUT_FILENO)
  /// Standard error.
  static let standardError = OutputFile(descriptor: STDERR_FILENO)

  /// The file descriptor.
  let descriptor: Int32
  private let writer: OutputWriter

  /// Writes to a descriptor, which must stay open.
  init(descriptor: Int32, patience: Patience = .ofTheProcess) {
    self.descriptor = descriptor
    writer = OutputWriter(descriptor: descriptor, patience: patience)
  }

  /// The reader has gone away, as `head` does: time to end, without a complaint.
  struct BrokenPipe: Error {}

  /// The process is to end, and the reader has not taken what was to be written first.
  struct Abandoned: Error {}

  /// Opens what the process was started without: otherwise the ledger could get the number of standard output,
  /// and messages would be written into it.
  static func openMissing() {
    for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(descriptor, F_GETFD) == -1 {
      // The lowest free number is the missing one, since those below it are open by now.
      _ = open("/dev/null", O_RDWR)
    }
  }

  /// Whether it is a terminal.
  var isTerminal: Bool { isatty(descriptor) == 1 }

  /// Writes a text.
  /// - Throws: ``BrokenPipe`` when nobody reads any more; ``Abandoned`` when the process is to end and the text could
  ///   not be written in time; ``DownloadError`` with `.storage` for anything else.
  func write(_ text: String) throws {
    guard !text.isEmpty else { return }
    try writer.write(text)
  }

  /// Writes a message for people on standard error. Nothing is left to do when that fails.
  static func complain(_ message: String) {
    try? standardError.write("downpipe: \(DisplayWidth.harmless(message))\n")
  }
}
