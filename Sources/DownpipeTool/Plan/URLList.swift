import Downpipe
import Foundation
import Synchronization

/// A file with a URL on each line. It is read piece by piece: a list of a million URLs, or a pipe without an end, need
/// not fit into memory.
final class URLList: Sendable {
  private struct State {
    var parser = URLListParser()
    var isAtEnd = false
  }

  private let descriptor: Int32
  private let name: String
  private let state = Mutex(State())
  /// Reading blocks, and must not take a thread that downloads need.
  private let queue = DispatchQueue(label: "downpipe.url-list")

  /// - Parameter path: `-` is standard input.
  init(_ path: String) throws(UsageError) {
    name = path == "-" ? "standard input" : "“\(path)”"
    if path == "-" {
      descriptor = STDIN_FILENO
      return
    }
    guard Folder.kind(path) != .directory else { throw UsageError("--input-file: \(name) is a folder") }
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw UsageError("--input-file: \(name) cannot be read: \(String(cString: strerror(errno)))")
    }
  }

  deinit {
    if descriptor != STDIN_FILENO { close(descriptor) }
  }

  /// Returns the next URLs as soon as there is one; `nil` at the end.
  func next() async throws -> [String]? {
    while !Task.isCancelled {
      let isCancelled = Flag()
      let urls: [String]? = try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          queue.async { continuation.resume(with: Result { try self.read(until: isCancelled) }) }
        }
      } onCancel: {
        isCancelled.raise()
      }
      guard let urls else { return nil }
      if !urls.isEmpty { return urls }
    }
    throw CancellationError()
  }

  private func read(until isCancelled: Flag) throws -> [String]? {
    if state.withLock({ $0.isAtEnd }) { return nil }
    var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while poll(&wanted, 1, 100) == 0 {
      if isCancelled.isRaised { throw CancellationError() }
    }
    var bytes = [UInt8](repeating: 0, count: 64 * 1024)
    let count = readSome(descriptor, &bytes)
    guard count >= 0 else {
      if errno == EINTR || errno == EAGAIN { return [] }
      throw UsageError("--input-file: \(name) cannot be read: \(String(cString: strerror(errno)))")
    }
    return state.withLock { state in
      if count == 0 { state.isAtEnd = true }
      return count == 0 ? state.parser.end() : state.parser.parse(bytes[..<count])
    }
  }

  private final class Flag: Sendable {
    private let value = Atomic(false)
    var isRaised: Bool { value.load(ordering: .relaxed) }
    func raise() { value.store(true, ordering: .relaxed) }
  }
}

/// Finds the URLs in the lines of a file, which end with LF, CR LF or CR. Blank lines and lines that start with `#` are
/// skipped.
struct URLListParser {
  /// A longer line is not a URL, nor a list of mirrors. So much of it is kept, for the error message.
  private static let longestLine = 32 * DownloadRequest.maximumURLBytes
  private var line: [UInt8] = []

  /// Returns the URLs of the lines that these bytes complete.
  mutating func parse(_ bytes: some Collection<UInt8>) -> [String] {
    var urls: [String] = []
    let pieces = bytes.split(omittingEmptySubsequences: false) { $0 == 0x0A || $0 == 0x0D }
    for piece in pieces.enumerated() {
      if piece.offset > 0, let url = removeLine() { urls.append(url) }
      line += piece.element.prefix(Self.longestLine - line.count)
    }
    return urls
  }

  /// Returns the URL of a last line without a line break.
  mutating func end() -> [String] { removeLine().map { [$0] } ?? [] }

  private mutating func removeLine() -> String? {
    defer { line.removeAll(keepingCapacity: true) }
    var text = line[...]
    // Some editors write a byte order mark.
    if text.starts(with: [0xEF, 0xBB, 0xBF]) { text = text.dropFirst(3) }
    while let first = text.first, first <= 0x20 { text.removeFirst() }
    while let last = text.last, last <= 0x20 { text.removeLast() }
    guard let first = text.first, first != UInt8(ascii: "#") else { return nil }
    if let text = String(validating: text, as: UTF8.self) { return text }
    // A list in Latin-1 or another encoding: its octets are requested, as browsers and curl do it.
    return text.map { $0 < 0x80 ? String(UnicodeScalar($0)) : "%" + String($0, radix: 16, uppercase: true) }.joined()
  }
}

// Outside the class, whose own `read` would hide the system call.
private func readSome(_ descriptor: Int32, _ bytes: inout [UInt8]) -> Int { read(descriptor, &bytes, bytes.count) }
