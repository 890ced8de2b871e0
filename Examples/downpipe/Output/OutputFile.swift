import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Standard output or standard error: every write is complete and unbuffered.
struct OutputFile: Sendable {
  /// Standard output.
  static let standardOutput = OutputFile(descriptor: STDOUT_FILENO)
  /// Standard error.
  static let standardError = OutputFile(descriptor: STDERR_FILENO)

  /// The file descriptor.
  let descriptor: Int32

  /// The reader has gone away, as `head` does: time to end, without a complaint.
  struct BrokenPipe: Error {}

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
  /// - Throws: ``BrokenPipe`` when nobody reads any more; ``DownloadError`` with `.storage` for anything else.
  func write(_ text: String) throws {
    guard !text.isEmpty else { return }
    var text = text
    try text.withUTF8 { try write(UnsafeRawBufferPointer($0)) }
  }

  private func write(_ bytes: UnsafeRawBufferPointer) throws {
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
        // Somebody has set the terminal or the pipe to non-blocking: wait until it takes more.
        var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&wanted, 1, 1000)
      } else if errno == EPIPE {
        throw BrokenPipe()
      } else if errno != EINTR {
        throw DownloadError(.storage, "the output cannot be written: \(String(cString: strerror(errno)))")
      }
    }
  }

  /// Writes a message for people on standard error. Nothing is left to do when that fails.
  static func complain(_ message: String) {
    try? standardError.write("downpipe: \(DisplayWidth.harmless(message))\n")
  }
}
