import DownpipeCore
import DownpipeTesting
import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The clock of the log, which is also that of files and databases of the same machine.
enum WallClock {
  /// Nanoseconds since 1970.
  static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}

/// A request of a client, from its arrival to the end of the reply.
struct ServedRequest: Hashable, Sendable {
  enum End: String, Sendable {
    /// All of the reply was sent, or as much as was intended.
    case sent
    /// The client has ended the connection.
    case lost
    /// The reply had not ended when the server did.
    case open
  }

  var host: String
  /// The address and the port of the client.
  var client: String
  var path: String
  /// When it arrived, by ``WallClock``.
  var start: UInt64
  /// When it ended; before the last byte was handed to the system, so that no client can know earlier.
  var finish: UInt64
  var end: End

  /// The line in the log.
  var line: String { "\(start) \(finish) \(end.rawValue) \(host) \(client) \(path)\n" }

  init(host: String, client: String, path: String, start: UInt64, finish: UInt64, end: End) {
    (self.host, self.client, self.path) = (host, client, path)
    (self.start, self.finish, self.end) = (start, finish, end)
  }

  init?(line: Substring) {
    let words = line.split(separator: " ")
    guard words.count == 6, let start = UInt64(words[0]), let finish = UInt64(words[1]),
      let end = End(rawValue: String(words[2]))
    else { return nil }
    self.init(
      host: String(words[3]), client: String(words[4]), path: String(words[5]), start: start, finish: finish, end: end)
  }
}

/// Counts the requests in progress of each host, and keeps a log of all.
final class RequestLog: Sendable {
  private struct State {
    /// By the number of the connection, which has one request at a time.
    var open: [Int: ServedRequest] = [:]
    var counts: [String: Int] = [:]
    var most = 0
    var total = 0
    var attempts: [String: Int] = [:]
    var unwritten: [UInt8] = []
  }

  private let state = Mutex(State())
  private let file: FileHandle?

  /// - Parameter path: The file for the log; `nil` for none.
  init(_ path: String?) throws {
    if let path { _ = FileManager.default.createFile(atPath: path, contents: nil) }
    file = try path.map { try FileHandle(forWritingTo: URL(filePath: $0)) }
  }

  /// A request has arrived.
  /// - Returns: The number of the request among those for the same path, counted from 1.
  func begin(_ request: ScriptedRequest) -> Int {
    let now = WallClock.now
    let host = request.headers["Host"] ?? ""
    return state.withLock { state in
      state.open[request.connection] = ServedRequest(
        host: host, client: request.client, path: request.path, start: now, finish: now, end: .open)
      state.total += 1
      let count = state.counts[host, default: 0] + 1
      state.counts[host] = count
      state.most = max(state.most, count)
      state.attempts[request.path, default: 0] += 1
      return state.attempts[request.path, default: 1]
    }
  }

  /// The reply of a connection has ended. A second call has no effect.
  func end(_ connection: Int, as end: ServedRequest.End) {
    state.withLock { state in
      guard var request = state.open.removeValue(forKey: connection) else { return }
      state.counts[request.host, default: 1] -= 1
      (request.finish, request.end) = (WallClock.now, end)
      guard file != nil else { return }
      state.unwritten += Array(request.line.utf8)
      if state.unwritten.count > 1 << 16 { write(&state) }
    }
  }

  /// Writes what is left, and returns the numbers of all requests and of the most at once of one host.
  func close() throws -> (total: Int, most: Int, files: Int) {
    state.withLock { state in
      for var request in state.open.values {
        request.finish = WallClock.now
        state.unwritten += Array(request.line.utf8)
      }
      write(&state)
      return (state.total, state.most, state.attempts.count)
    }
  }

  private func write(_ state: inout State) {
    try? file?.write(contentsOf: Data(state.unwritten))
    state.unwritten = []
  }
}
