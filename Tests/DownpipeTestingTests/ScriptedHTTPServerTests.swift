import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite(.endsHangs)
struct ScriptedHTTPServerTests {
  static let content = ScriptedContent.pattern(size: 1000, seed: 7)

  struct RangeCase: Sendable, CustomTestStringConvertible {
    var headers: HeaderFields
    var status: Int
    var contentRange: String?
    var body: Range<Int64>?
    var options = (supportsRanges: true, ignoreIfRange: false)
    var testDescription: String { "\(headers.fields.map { "\($0.name): \($0.value)" }) → \(status)" }
  }

  static let ranges: [RangeCase] = [
    RangeCase(headers: [], status: 200, body: 0..<1000),
    RangeCase(headers: ["Range": "bytes=10-19"], status: 206, contentRange: "bytes 10-19/1000", body: 10..<20),
    RangeCase(headers: ["Range": "bytes=990-"], status: 206, contentRange: "bytes 990-999/1000", body: 990..<1000),
    RangeCase(headers: ["Range": "bytes=990-5000"], status: 206, contentRange: "bytes 990-999/1000", body: 990..<1000),
    RangeCase(headers: ["Range": "bytes=-5"], status: 206, contentRange: "bytes 995-999/1000", body: 995..<1000),
    RangeCase(headers: ["Range": "bytes=1000-"], status: 416, contentRange: "bytes */1000", body: 0..<0),
    RangeCase(headers: ["Range": "bytes=9-3"], status: 200, body: 0..<1000),
    RangeCase(headers: ["Range": "lines=1-2"], status: 200, body: 0..<1000),
    RangeCase(headers: ["Range": "bytes=10-19", "If-Range": "\"v1\""], status: 206, body: 10..<20),
    RangeCase(headers: ["Range": "bytes=10-19", "If-Range": "\"v2\""], status: 200, body: 0..<1000),
    RangeCase(headers: ["Range": "bytes=10-19", "If-Range": "W/\"v1\""], status: 200, body: 0..<1000),
    RangeCase(
      headers: ["Range": "bytes=10-19", "If-Range": "Thu, 01 Jan 1970 00:00:00 GMT"], status: 206, body: 10..<20),
    RangeCase(
      headers: ["Range": "bytes=10-19", "If-Range": "Thu, 01 Jan 1970 00:00:01 GMT"], status: 200, body: 0..<1000),
    RangeCase(
      headers: ["Range": "bytes=10-19", "If-Range": "\"v2\""], status: 206, body: 10..<20, options: (true, true)),
    RangeCase(headers: ["Range": "bytes=10-19"], status: 200, body: 0..<1000, options: (false, false)),
    RangeCase(headers: ["If-None-Match": "\"v1\""], status: 304, body: 0..<0),
  ]

  @Test(arguments: ranges)
  func answersRanges(_ example: RangeCase) async throws {
    try await withScriptedServer {
      .file(
        Self.content, etag: "\"v1\"", lastModified: Date(timeIntervalSince1970: 0),
        supportsRanges: example.options.supportsRanges, ignoreIfRange: example.options.ignoreIfRange, for: $0)
    } _: { server in
      let answer = try await RawAnswer(server, headers: example.headers)
      #expect(answer.status == example.status)
      if let expected = example.contentRange { #expect(answer.headers["Content-Range"] == expected) }
      if let range = example.body { #expect(answer.body == Self.content.bytes(in: range)) }
      #expect(answer.headers["ETag"] == "\"v1\"")
    }
  }

  @Test func answersHeadWithoutBody() async throws {
    try await withScriptedServer {
      .file(Self.content, for: $0)
    } _: { server in
      let answer = try await RawAnswer(server, method: "HEAD")
      #expect(answer.headers["Content-Length"] == "1000")
      #expect(answer.body.isEmpty)
    }
  }

  @Test func logsRequestsAndCountsThemByPath() async throws {
    try await withScriptedServer {
      ScriptedReply($0.number == 1 ? 503 : 200)
    } _: { server in
      var statuses: [Int] = []
      for path in ["/a?x=1", "/b", "/a?x=2"] { statuses.append(try await RawAnswer(server, path: path).status) }
      #expect(statuses == [503, 503, 200])
      #expect(server.requests.map(\.target) == ["/a?x=1", "/b", "/a?x=2"])
      #expect(server.requests.map(\.path) == ["/a", "/b", "/a"])
      #expect(server.requests.map(\.connection) == [1, 2, 3])
      #expect(server.requests[0].headers["host"] == "127.0.0.1")
    }
  }

  @Test func keepsConnectionsAndAnswersPipelinedRequestsInOrder() async throws {
    try await withScriptedServer {
      ScriptedReply(200, body: .text($0.path))
    } _: { server in
      let text =
        "GET /one HTTP/1.1\r\n\r\nPOST /two HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /three HTTP/1.1\r\n\r\n"
      let bytes = try await exchange(server, text) { $0.suffix(6).elementsEqual("/three".utf8) }
      let received = String(decoding: bytes, as: UTF8.self)
      #expect(received.components(separatedBy: "HTTP/1.1 200 OK").count == 4)
      #expect(server.activity.connections == 1)
      #expect(server.requests.map(\.path) == ["/one", "/two", "/three"])
    }
  }

  @Test(arguments: [0, 1, 512, 999] as [Int64])
  func truncates(after count: Int64) async throws {
    try await withScriptedServer {
      .file(Self.content, for: $0).truncated(after: count)
    } _: { server in
      let answer = try await RawAnswer(server)
      #expect(answer.headers["Content-Length"] == "1000")
      #expect(answer.body == Self.content.bytes(in: 0..<count))
    }
  }

  @Test func resets() async throws {
    try await withScriptedServer { _ in
      ScriptedReply([.reset])
    } _: { server in
      await #expect(throws: POSIXError.self) { try await RawAnswer(server) }
    }
  }

  @Test func holdsUntilTheGateOpens() async throws {
    let gate = ServerGate()
    try await withScriptedServer {
      .file(Self.content, for: $0).held(at: gate, after: 10)
    } _: { server in
      async let answer = RawAnswer(server)
      await gate.arrivals(1)
      let sent = server.activity.bytesSent
      #expect(sent > 10 && sent < 1000)
      gate.open()
      let body = try await answer.body
      #expect(body == Self.content.allBytes)
    }
  }

  @Test func throttles() async throws {
    try await withScriptedServer { request in
      ScriptedReply([.throttle(bytesPerSecond: 5_000)] + ScriptedReply.file(Self.content, for: request).steps)
    } _: { server in
      let start = ContinuousClock.now
      let count = try await RawAnswer(server).body.count
      #expect(count == 1000)
      #expect(ContinuousClock.now - start > .milliseconds(150))
    }
  }

  @Test func waitsForClientsThatDoNotRead() async throws {
    let size: Int64 = 1 << 40
    try await withScriptedServer {
      .file(.pattern(size: size), for: $0)
    } _: { server in
      let socket = try LoopbackSocket(port: server.port)
      try socket.send("GET / HTTP/1.1\r\n\r\n")
      try await server.until { $0.stalls > 0 }
      #expect(server.activity.bytesSent < 64 << 20)
      socket.close()
      try await server.until { $0.openConnections == 0 }
    }
  }

  @Test func shutsDownWhileAnAnswerIsHeld() async throws {
    let gate = ServerGate()
    let server = try await ScriptedHTTPServer.start { _ in ScriptedReply([.hold(gate)]) }
    async let answer = RawAnswer(server)
    await gate.arrivals(1)
    await server.shutdown()
    await server.shutdown()
    let status = try await answer.status
    #expect(status == 0)
    gate.open()
  }

  @Test func servesOthersWhileOneClientDoesNotRead() async throws {
    let gate = ServerGate()
    try await withScriptedServer { request in
      switch request.path {
      case "/endless": .file(.pattern(size: 1 << 40), for: request)
      case "/held": ScriptedReply(200, body: .text("late")).after(.hold(gate))
      default: ScriptedReply(200, body: .text(request.path))
      }
    } _: { server in
      let silent = try LoopbackSocket(port: server.port)
      try silent.send("GET /endless HTTP/1.1\r\n\r\n")
      try await server.until { $0.stalls > 0 }
      async let held = RawAnswer(server, path: "/held")
      await gate.arrivals(1)
      let bodies = try await withThrowingTaskGroup { group in
        for number in 0..<200 { group.addTask { try await RawAnswer(server, path: "/\(number)").body } }
        return try await group.reduce(into: Set()) { $0.insert(String(decoding: $1, as: UTF8.self)) }
      }
      #expect(bodies == Set((0..<200).map { "/\($0)" }))
      gate.open()
      #expect(try await held.body == Array("late".utf8))
      silent.close()
      try await server.until { $0.openConnections == 0 }
    }
  }

  @Test func shutsDownInATaskThatIsCancelled() async throws {
    let server = try await ScriptedHTTPServer.start { _ in .closed }
    let shutdown = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      await server.shutdown()
    }
    await shutdown.value
    // Its port is free.
    let next = try await ScriptedHTTPServer.start(host: "127.0.0.1", port: server.port, onLoss: { _ in }) { _ in .closed
    }
    await next.shutdown()
  }

  @Test func readsTheWholeBodyBeforeItCloses() async throws {
    try await withScriptedServer { _ in
      ScriptedReply(200, body: .text("seen"))
    } _: { server in
      let socket = try LoopbackSocket(port: server.port)
      try socket.send("POST / HTTP/1.1\r\nConnection: close\r\nContent-Length: 6\r\n\r\nabc")
      try await server.until { $0.bytesSent > 40 }
      #expect(server.activity.openConnections == 1)
      try socket.send("def")
      try await server.until { $0.openConnections == 0 }
      #expect(String(decoding: try socket.receive { _ in false }, as: UTF8.self).hasSuffix("seen"))
      socket.close()
    }
  }

  @Test func aDelayMayBeEndless() async throws {
    try await withScriptedServer { _ in
      ScriptedReply([.delay(.seconds(Int64.max)), .close])
    } _: { server in
      let socket = try LoopbackSocket(port: server.port)
      try socket.send("GET / HTTP/1.1\r\n\r\n")
      try await server.until { $0.requestCount == 1 }
      socket.close()
      try await server.until { $0.openConnections == 0 }
    }
  }

  @Test func namesAnAddressOfAnotherMachine() async {
    await #expect {
      try await ScriptedHTTPServer.start(host: "192.0.2.1") { _ in .closed }
    } throws: {
      ($0 as? DownloadError)?.message.contains("192.0.2.1") == true
    }
  }

  @Test func namesThePortThatIsTaken() async throws {
    try await withScriptedServer { _ in
      .closed
    } _: { server in
      await #expect {
        try await ScriptedHTTPServer.start(host: "127.0.0.1", port: server.port, onLoss: { _ in }) { _ in .closed }
      } throws: {
        ($0 as? DownloadError)?.message.contains("port \(server.port)") == true
      }
    }
  }

  @Test func waitingEndsWhenCancelled() async throws {
    try await withScriptedServer { _ in
      .closed
    } _: { server in
      let waiting = Task { try await server.until { $0.requestCount > 0 } }
      waiting.cancel()
      await #expect(throws: CancellationError.self) { try await waiting.value }
    }
  }

  @Test func contentIsAFunctionOfThePosition() {
    let content = ScriptedContent.pattern(size: 100, seed: 3)
    let all = content.allBytes
    #expect(all == (0..<100).map { content.byte(at: $0) })
    for start in 0..<20 as Range<Int64> {
      let part = content.bytes(in: start..<start + 33)
      #expect(part == Array(all[Int(start)..<Int(start) + 33]))
      let (here, there) = (
        content.matches(part.span.bytes, at: start), content.matches(part.span.bytes, at: start + 1)
      )
      #expect(here && !there)
    }
    let isPastTheEnd = content.matches(all.span.bytes, at: 1)
    #expect(!isPastTheEnd)
    #expect(all != ScriptedContent.pattern(size: 100, seed: 4).allBytes)
  }
}

/// An answer fetched with a plain socket, because an HTTP client could hide errors of the server.
private struct RawAnswer: Sendable {
  var status = 0
  var headers = HeaderFields()
  var body: [UInt8] = []

  init(_ server: ScriptedHTTPServer, method: String = "GET", path: String = "/", headers: HeaderFields = [])
    async throws
  {
    let fields = headers.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
    let text = "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\(fields)\r\n"
    let bytes = try await exchange(server, text) { _ in false }
    guard let end = (0..<max(0, bytes.count - 3)).first(where: { bytes[$0..<$0 + 4].elementsEqual([13, 10, 13, 10]) })
    else { return }
    let lines = String(decoding: bytes[..<end], as: UTF8.self).components(separatedBy: "\r\n")
    status = Int(lines[0].split(separator: " ")[1]) ?? 0
    self.headers.fields = lines.dropFirst().map { line in
      let parts = line.split(separator: ": ", maxSplits: 1)
      return HeaderField(String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
    }
    body = Array(bytes[(end + 4)...])
  }
}

/// Sends a text and reads the answer, on a thread that may block.
private func exchange(
  _ server: ScriptedHTTPServer, _ text: String, until isEnough: @escaping @Sendable ([UInt8]) -> Bool
) async throws -> [UInt8] {
  let port = server.port
  return try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread {
      continuation.resume(
        with: Result {
          let socket = try LoopbackSocket(port: port)
          defer { socket.close() }
          try socket.send(text)
          return try socket.receive(until: isEnough)
        })
    }
  }
}

private struct LoopbackSocket {
  let descriptor: Int32

  init(port: Int) throws {
    #if canImport(Glibc)
      descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
      descriptor = Darwin.socket(AF_INET, SOCK_STREAM, 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let connected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if connected != 0 { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
  }

  func send(_ text: String) throws {
    let bytes = Array(text.utf8)
    guard write(descriptor, bytes, bytes.count) == bytes.count else { throw POSIXError(.EIO) }
  }

  /// Reads until the connection ends or the condition holds.
  func receive(until isEnough: ([UInt8]) -> Bool) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while !isEnough(bytes) {
      let count = read(descriptor, &buffer, buffer.count)
      if count == 0 { break }
      if count < 0 { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
      bytes += buffer[..<count]
    }
    return bytes
  }

  func close() {
    #if canImport(Glibc)
      _ = Glibc.close(descriptor)
    #else
      _ = Darwin.close(descriptor)
    #endif
  }
}
