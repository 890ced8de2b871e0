import DownpipeCore
import DownpipeTesting

/// Replies that are late, and some of them wrong. The same seed makes the same faults.
struct FaultyReplies: Sendable {
  /// How a reply fails.
  enum Fault: CaseIterable, Sendable {
    /// A status that says to come again in a second.
    case busy
    case serverError
    /// The connection is reset in the body.
    case reset
    /// The connection is closed in the body.
    case truncated
    /// The connection is closed after all bytes, and before the chunk that says so.
    case unended
    /// The range is another one than the client has asked for.
    case wrongRange
    /// Nothing comes for a while, and then the end.
    case silent
    /// All is right, but it takes seconds.
    case slow
  }

  let seed: UInt64
  /// How long a reply is late on average.
  let delay: Duration
  /// How many replies of a thousand fail.
  let faultsInAThousand: Int
  /// The number of requests of a file that may fail. So every file can be fetched by a client that tries again.
  static let mostFaults = 3

  let log: RequestLog

  func reply(to request: ScriptedRequest) -> ScriptedReply {
    let attempt = log.begin(request)
    let reply = reply(to: request, attempt: attempt)
    return ended(reply, request.connection)
  }

  private func reply(to request: ScriptedRequest, attempt: Int) -> ScriptedReply {
    guard let file = ServedFile(request.path) else { return .status(404) }
    var generator = SeededGenerator(seed: seed ^ UInt64(file.number) << 8 ^ UInt64(attempt))
    _ = generator.next()
    let delay = delay * Double.random(in: 0...2, using: &generator)
    let right = ScriptedReply.file(file.content, etag: file.entityTag, for: request)
    let fails = attempt <= Self.mostFaults && Int.random(in: 0..<1000, using: &generator) < faultsInAThousand
    let fault = fails ? Fault.allCases.randomElement(using: &generator) : nil
    return (fault.map { self.fault($0, file, right, request, &generator) } ?? right).after(.delay(delay))
  }

  private func fault(
    _ fault: Fault, _ file: ServedFile, _ right: ScriptedReply, _ request: ScriptedRequest,
    _ generator: inout SeededGenerator
  ) -> ScriptedReply {
    let middle = Int64.random(in: 0...file.size / 2, using: &generator)
    switch fault {
    case .busy: return .status(503, retryAfter: .seconds(1))
    case .serverError: return .status(500)
    case .reset: return right.truncated(after: middle, reset: true)
    case .truncated: return right.truncated(after: middle)
    case .unended:
      return ScriptedReply([
        .head(200, ["ETag": file.entityTag, "Transfer-Encoding": "chunked"]),
        .send(String(file.size, radix: 16) + "\r\n"), .send(file.content), .close,
      ])
    case .wrongRange:
      guard let range = request.range, range.start > 0 else { return .status(500) }
      let start = range.start / 2
      return ScriptedReply(
        206,
        [
          "ETag": file.entityTag, "Content-Length": "\(file.size - start)",
          "Content-Range": "bytes \(start)-\(file.size - 1)/\(file.size)",
        ], body: .bytes(file.content.bytes(in: start..<file.size)))
    case .silent: return ScriptedReply([.delay(.seconds(.random(in: 1...10, using: &generator))), .close])
    case .slow: return right.after(.throttle(bytesPerSecond: max(1_000, Int(file.size) / 5)))
    }
  }

  /// Ends the count of a request before the last byte, or the end of the connection, can reach its client.
  private func ended(_ reply: ScriptedReply, _ connection: Int) -> ScriptedReply {
    let end = ScriptedReply.Step.call { log.end(connection, as: .sent) }
    var steps = reply.steps
    switch steps.popLast() {
    case .content(let content, let range)? where range.count > 1:
      let last = range.upperBound - 1
      steps += [.content(content, range.lowerBound..<last), end, .content(content, last..<range.upperBound)]
    case let last?: steps += [end, last]
    case nil: steps = [end]
    }
    return ScriptedReply(steps)
  }
}
