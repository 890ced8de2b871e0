import DownpipeCore
import Foundation
import FuzzSupport
import Synchronization

@testable import DownpipeHTTP

/// The life of a transfer, ended in every phase, for AddressSanitizer: what the shim gives to libcurl must live as long as
/// libcurl uses it, and each call must return once.
struct Scenarios: Sendable {
  struct SinkError: Error {}

  static let ok = "HTTP/1.1 200 OK\r\n"
  static let endless = answer(ok + "Content-Length: 100000000\r\n\r\n", bytes: 32 << 20)
  static let long = answer(ok + "Content-Length: 300000\r\n\r\n", bytes: 300_000)
  static let short = answer(ok + "Content-Length: 3000\r\n\r\n", bytes: 3000)
  static let hold = AnswerScript.Ending.idle(milliseconds: 3000)

  static func answer(_ head: String, bytes count: Int = 0) -> [[UInt8]] {
    [Seeds.bytes(head) + [UInt8](repeating: 0x61, count: count)]
  }

  func runAll() async {
    for (name, scenario) in all {
      let start = ContinuousClock.now
      do { try await scenario() } catch { fail("\(name): \(error)") }
      note("\(name): \((ContinuousClock.now - start) / .milliseconds(1)) ms")
    }
  }

  /// Runs `work` several times against a new server and a new session, then checks that no transfer is left.
  func repeated(
    times: Int = 20, _ script: AnswerScript, _ configure: (inout HTTPSource.Configuration, URL) -> Void = { _, _ in },
    _ work: (HTTPSession, URL, AnswerServer) async throws -> Void
  ) async throws {
    guard let server = AnswerServer(), let url = URL(string: server.url) else { fail("there is no server") }
    var configuration = HTTPSource.Configuration()
    configuration.proxy = .none
    configure(&configuration, url)
    let session = try HTTPSession(configuration, threads: 2)
    for _ in 0..<times {
      server.serve(script)
      try await work(session, url, server)
    }
    try await settle(session)
    await session.stop()
  }

  func settle(_ session: HTTPSession) async throws {
    for _ in 0..<3000 where session.transferCount > 0 { try await Task.sleep(for: .milliseconds(1)) }
    expect(session.transferCount == 0, "a transfer is left")
  }

  func expect(_ condition: Bool, _ text: String) {
    if !condition { fail(text) }
  }

  /// Reads a body, and returns the number of its bytes.
  func read(_ reply: SourceReply, _ sink: @escaping ChunkSink = { _ in }) async throws -> Int64 {
    let received = Received()
    try await reply.body.forEachChunk { chunk in
      _ = chunk.withUnsafeBytes { received.append($0) }
      try sink(chunk)
    }
    return received.count
  }

  /// Runs a task, cancels it after a time, and returns its error.
  func cancelled(
    after time: Duration?, _ work: @escaping @Sendable () async throws -> Void
  ) async throws -> (any Error)? {
    let task = Task(operation: work)
    if let time { try await Task.sleep(for: time) }
    task.cancel()
    do { try await task.value } catch { return error }
    return nil
  }

  /// The error of a call; `nil` when it succeeds.
  func error(_ work: () async throws -> Void) async -> (any Error)? {
    do { try await work() } catch { return error }
    return nil
  }
}
