import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeURLSession

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension URLSessionTests {
  @Suite(.endsHangs)
  struct FailureTests {
    static let answers: [(ScriptedReply, DownloadError.Code)] = [
      (.closed, .network),
      (ScriptedReply([.reset]), .network),
      (.garbage, .invalidResponse),
      (ScriptedReply([.send("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello"), .close]), .invalidResponse),
      (ScriptedReply([.send("HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\nhello"), .close]), .invalidResponse),
      (ScriptedReply([.send("HTTP/1.1 999999 What\r\n\r\nhello"), .close]), .invalidResponse),
      (
        ScriptedReply([.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nhello"), .close]),
        .invalidResponse
      ),
      (
        ScriptedReply([.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"), .close]),
        .invalidResponse
      ),
      (ScriptedReply(200, body: .pattern(size: 3 << 20)).truncated(after: 100_000), .network),
      (ScriptedReply(200, body: .pattern(size: 3 << 20)).truncated(after: 100_000, reset: true), .network),
    ]

    @Test(arguments: answers.indices)
    func brokenAnswers(_ index: Int) async throws {
      let (answer, code) = Self.answers[index]
      try await withScriptedServer { _ in
        answer
      } _: { server in
        try await withSource { source in
          let error = await downloadError {
            try await source.open(SourceRequest(url: server.url())).body.forEachChunk { _ in }
          }
          #expect(error?.code == code, "\(String(describing: error))")
        }
      }
    }

    @Test func whatArrivedBeforeTheBreakIsDelivered() async throws {
      let content = ScriptedContent.pattern(size: 3 << 20)
      try await withScriptedServer {
        .file(content, for: $0).truncated(after: 2 << 20)
      } _: { server in
        try await withSource { source in
          let check = BodyCheck(content)
          let reply = try await source.open(SourceRequest(url: server.url()))
          let error = await downloadError { try await reply.body.forEachChunk(check.sink) }
          #expect(error?.code == .network)
          #expect(check.end == 2 << 20)
        }
      }
    }

    @Test func refusedConnection() async throws {
      let port = try RefusingPort()
      try await withSource { source in
        #expect(await downloadError { _ = try await source.open(SourceRequest(url: port.url())) }?.code == .network)
      }
    }

    @Test(arguments: ["downpipe-unsupported://a/", "ftp://a/"])
    func refusedURLs(_ text: String) async throws {
      let url = try #require(URL(string: text))
      let error = await downloadError { _ = try await URLSessionSource().open(SourceRequest(url: url)) }
      #expect(error?.code == .unsupportedURL)
    }

    @Test func refusedFields() async throws {
      let request = SourceRequest(
        url: try #require(URL(string: "http://127.0.0.1:1/")), headers: ["Range": "bytes=0-1"])
      #expect(await downloadError { _ = try await URLSessionSource().open(request) }?.code == .invalidRequest)
    }

    @Test func connectTimeLimit() async throws {
      let gate = ServerGate()
      var configuration = URLSessionSource.Configuration.ephemeral
      configuration.connectTimeLimit = .milliseconds(100)
      try await withScriptedServer { _ in
        ScriptedReply(200).after(.hold(gate))
      } _: { server in
        try await withSource(configuration) { source in
          let error = await downloadError { _ = try await source.open(SourceRequest(url: server.url())) }
          #expect(error?.code == .timedOut)
        }
        gate.open()
      }
    }

    @Test func idleTimeLimit() async throws {
      let gate = ServerGate()
      var configuration = URLSessionSource.Configuration.ephemeral
      configuration.idleTimeLimit = .milliseconds(100)
      let content = ScriptedContent.pattern(size: 100_000)
      try await withScriptedServer {
        .file(content, for: $0).held(at: gate, after: 50_000)
      } _: { server in
        try await withSource(configuration) { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          let check = BodyCheck(content)
          let error = await downloadError { try await reply.body.forEachChunk(check.sink) }
          #expect(error?.code == .timedOut)
          #expect(check.end == 50_000)
        }
        gate.open()
      }
    }

    @Test func totalTimeLimit() async throws {
      var configuration = URLSessionSource.Configuration.ephemeral
      configuration.totalTimeLimit = .milliseconds(200)
      try await withScriptedServer {
        ScriptedReply([.throttle(bytesPerSecond: 10_000)] + ScriptedReply.file(.pattern(size: 1 << 20), for: $0).steps)
      } _: { server in
        try await withSource(configuration) { source in
          let reply = try await source.open(SourceRequest(url: server.url()))
          let error = await downloadError { try await reply.body.forEachChunk { _ in } }
          #expect(error?.code == .timedOut)
          #expect(error?.message.contains("not complete within the time limit of 0.2 seconds") ?? false)
        }
      }
    }

    @Test func stopEndsWhatRuns() async throws {
      let gate = ServerGate()
      let content = ScriptedContent.pattern(size: 8 << 20)
      try await withScriptedServer { request in
        request.path == "/held" ? .file(content, for: request).held(at: gate, after: 10) : .file(content, for: request)
      } _: { server in
        let source = try await URLSessionSource().start(in: SourceContext())
        let held = try await source.open(SourceRequest(url: server.url("/held")))
        let unread = try await source.open(SourceRequest(url: server.url("/unread")))
        async let error = downloadError { try await held.body.forEachChunk { _ in } }
        await source.stop()
        #expect(await error?.code == .shutDown)
        #expect(await downloadError { try await unread.body.forEachChunk { _ in } }?.code == .shutDown)
        #expect(await downloadError { _ = try await source.open(SourceRequest(url: server.url())) }?.code == .shutDown)
        gate.open()
      }
    }

    #if canImport(FoundationNetworking)
      @Test func announcedTrailerIsRefusedBeforeItComes() async throws {
        let gate = ServerGate()
        try await withScriptedServer { _ in
          ScriptedReply([.head(200, ["Transfer-Encoding": "chunked", "Trailer": "X-A"]), .hold(gate), .close])
        } _: { server in
          try await withSource { source in
            let error = await downloadError { _ = try await source.open(SourceRequest(url: server.url())) }
            #expect(error?.code == .invalidResponse)
          }
          gate.open()
        }
      }
    #endif

    @Test(arguments: [
      (URLError.Code.timedOut, "", DownloadError.Code.timedOut), (.cannotFindHost, "", .hostNotFound),
      (.cannotConnectToHost, "", .network), (.networkConnectionLost, "", .network),
      (.serverCertificateUntrusted, "", .tls), (.secureConnectionFailed, "", .tls), (.badURL, "", .unsupportedURL),
      (.cancelled, "", .cancelled), (.httpTooManyRedirects, "", .tooManyRedirects),
      (.unknown, "SSL certificate problem: self-signed certificate", .tls),
      (.unknown, "Received HTTP/0.9 when not allowed", .invalidResponse), (.unknown, "Recv failure", .network),
      (.cannotConnectToHost, "Couldn't open socket: Too many open files", .tooManyOpenFiles),
    ])
    func codes(_ code: URLError.Code, _ text: String, _ expected: DownloadError.Code) {
      let error = NSError(
        domain: NSURLErrorDomain, code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: text])
      #expect(DownloadError(transport: error).code == expected)
    }
  }
}
