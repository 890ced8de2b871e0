import Foundation
import Synchronization

/// Reads a file, or standard input, line by line.
final class LineReader: Sendable {
  struct Line: Sendable {
    /// The number of the line, from 1.
    let number: Int
    /// Without its end; `nil` for a line that is too long to be read.
    let bytes: [UInt8]?
  }

  private struct State {
    var buffer: [UInt8] = []
    /// Where the next line begins in the buffer.
    var start = 0
    /// Up to where there is no end of a line.
    var searched = 0
    var number = 0
    var isTooLong = false
    var isAtEnd = false

    mutating func takeLine(to end: Int, next: Int) -> Line {
      number += 1
      defer { (start, searched, isTooLong) = (next, next, false) }
      return Line(number: number, bytes: isTooLong ? nil : Array(buffer[start..<end]))
    }
  }

  /// More than the largest record: the digests of the pieces of a file of 4 TB are 170 MB.
  private static let longestLine = 256 << 20
  private static let chunk = 256 << 10

  private let descriptor: Int32
  private let name: String
  private let state = Mutex(State())
  /// Reading blocks.
  private let queue = DispatchQueue(label: "downpipe.lines")

  /// - Parameter path: `-` is standard input.
  init(_ path: String) throws(UsageError) {
    name = path == "-" ? "standard input" : "“\(path)”"
    if path == "-" {
      descriptor = STDIN_FILENO
      return
    }
    guard Folder.kind(path) != .directory else { throw UsageError("\(name) is a folder: name a file") }
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw UsageError("\(name) cannot be read: \(String(cString: strerror(errno)))") }
  }

  deinit {
    if descriptor != STDIN_FILENO { close(descriptor) }
  }

  /// Reads lines and makes something of them on a thread of its own.
  ///
  /// - Parameters:
  ///   - count: The largest number of lines.
  ///   - size: Ends the lines when they have so many bytes.
  /// - Returns: An empty result at the end of the file.
  func next<Result: Sendable>(
    _ count: Int, of size: Int, _ make: @escaping @Sendable (Line) -> Result
  ) async throws -> [Result] {
    try await withCheckedThrowingContinuation { continuation in
      queue.async {
        continuation.resume(
          with: Swift.Result {
            var results: [Result] = []
            var bytes = 0
            while results.count < count, bytes < size, let line = try self.readLine() {
              bytes += line.bytes?.count ?? 0
              results.append(make(line))
            }
            return results
          })
      }
    }
  }

  private func readLine() throws -> Line? {
    try state.withLock { state in
      while true {
        if let end = state.buffer[state.searched...].firstIndex(of: 0x0A) {
          return state.takeLine(to: end, next: end + 1)
        }
        if state.isAtEnd {
          // A last line without its end.
          return state.start == state.buffer.count && !state.isTooLong
            ? nil : state.takeLine(to: state.buffer.count, next: state.buffer.count)
        }
        state.buffer.removeFirst(state.start)
        state.start = 0
        if state.buffer.count > Self.longestLine {
          state.buffer.removeAll()
          state.isTooLong = true
        }
        state.searched = state.buffer.count
        try fill(&state)
      }
    }
  }

  private func fill(_ state: inout State) throws {
    var chunk = [UInt8](repeating: 0, count: Self.chunk)
    var count = readSome(descriptor, &chunk)
    while count < 0, errno == EINTR || errno == EAGAIN {
      var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      _ = poll(&wanted, 1, 1000)
      count = readSome(descriptor, &chunk)
    }
    guard count >= 0 else {
      throw UsageError("\(name) cannot be read: \(String(cString: strerror(errno)))")
    }
    if count == 0 { state.isAtEnd = true }
    state.buffer += chunk[..<count]
  }
}

// Outside the class, whose own `read` would hide the system call.
private func readSome(_ descriptor: Int32, _ bytes: inout [UInt8]) -> Int { read(descriptor, &bytes, bytes.count) }
