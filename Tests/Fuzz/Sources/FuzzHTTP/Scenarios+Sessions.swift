import DownpipeCore
import Foundation
import FuzzSupport
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

@testable import DownpipeHTTP

extension Scenarios {
  private static let question = answer(
    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n"
      + "Content-Length: 2\r\n\r\nno")

  @Sendable func digest() async throws {
    let configure = { (configuration: inout HTTPSource.Configuration, url: URL) in
      guard let origin = Origin(url) else { return }
      configuration.credentials = [.password(user: "me", password: "s3cret", schemes: .digest, for: origin)]
    }
    for ending in [AnswerScript.Ending.close, .idle(milliseconds: 50)] {
      try await repeated(times: 5, AnswerScript(answers: [Self.question, Self.short], ending: ending), configure) {
        session, url, _ in
        expect(try await read(session.open(SourceRequest(url: url))) == 3000, "the body is not complete")
      }
      try await repeated(times: 5, AnswerScript(answers: [Self.question], ending: ending), configure) {
        session, url, _ in
        let reply = try await session.open(SourceRequest(url: url))
        expect(reply.coverage == .none(.status(401)), "the reply is \(reply.coverage)")
        _ = try await read(reply)
      }
      // The second head is cut short.
      let half = AnswerScript(answers: [Self.question, Self.answer(Self.ok + "ETag: \"a\"\r\n")], ending: .close)
      try await repeated(times: 5, half, configure) { session, url, _ in
        let reply = try? await session.open(SourceRequest(url: url))
        expect(reply == nil, "half a head was taken for a reply: \(String(describing: reply?.coverage))")
      }
    }
  }

  @Sendable func cookies() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "cookies-\(UUID())").path(percentEncoded: false)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let answer = Self.answer(Self.ok + "Set-Cookie: id=7; Path=/; Max-Age=600\r\nContent-Length: 0\r\n\r\n")
    for _ in 0..<3 {
      try await repeated(
        times: 3, AnswerScript(answers: [answer]),
        {
          $0.cookies = .file(path); _ = $1
        }
      ) { session, url, _ in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<8 {
            group.addTask {
              let task = Task { _ = try await read(session.open(SourceRequest(url: url))) }
              if number % 4 == 0 { task.cancel() }
              do { try await task.value } catch is CancellationError {}
            }
          }
          try await group.waitForAll()
        }
      }
      let text = try String(contentsOfFile: path, encoding: .utf8)
      expect(text.contains("id"), "the cookie was not kept")
    }
  }

  @Sendable func addresses() async throws {
    try await repeated(
      times: 50, AnswerScript(answers: [Self.short]),
      { configuration, url in
        configuration.resolve = [.init(host: "a.example", port: url.port ?? 80, addresses: ["127.0.0.1"])]
      }
    ) { session, url, _ in
      guard let named = URL(string: "http://a.example:\(url.port ?? 80)/") else { return }
      _ = try await cancelled(after: nil) { _ = try await session.open(SourceRequest(url: named)) }
      _ = try await read(session.open(SourceRequest(url: url)))
      _ = try await read(session.open(SourceRequest(url: named)))
    }
  }

  @Sendable func silence() async throws {
    for answer in [[], Self.answer(Self.ok + "Content-Length: 9\r\n\r\n", bytes: 3)] {
      try await repeated(
        times: 3, AnswerScript(answers: [answer], ending: Self.hold),
        {
          $0.idleTimeLimit = .milliseconds(50); _ = $1
        }
      ) { session, url, _ in
        let error = await error { _ = try await read(session.open(SourceRequest(url: url))) }
        expect((error as? DownloadError)?.code == .timedOut, "\(String(describing: error)) is not .timedOut")
      }
    }
  }

  /// All phases at once, then the end of the session.
  private func busy(_ session: HTTPSession, _ url: URL, _ body: () async throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<12 {
        group.addTask {
          do {
            let reply = try await session.open(SourceRequest(url: url))
            if number % 3 == 0 { try await Task.sleep(for: .milliseconds(5)) }
            if number % 4 == 0 { return reply.body.discard() }
            _ = try await read(reply) { _ in usleep(100) }
          } catch let error as DownloadError where error.code == .shutDown {
          } catch is CancellationError {}
        }
      }
      try await Task.sleep(for: .milliseconds(3))
      try await body()
      group.cancelAll()
      try await group.waitForAll()
    }
  }

  @Sendable func stopped() async throws {
    for answer in [Self.endless, []] {
      for _ in 0..<5 {
        try await repeated(times: 1, AnswerScript(answers: [answer], ending: Self.hold)) { session, url, _ in
          try await busy(session, url) {
            async let first: Void = session.stop()
            async let second: Void = session.stop()
            _ = await (first, second)
          }
          let error = await error { _ = try await session.open(SourceRequest(url: url)) }
          expect((error as? DownloadError)?.code == .shutDown, "\(String(describing: error)) is not .shutDown")
        }
      }
    }
  }

  @Sendable func released() async throws {
    guard let server = AnswerServer(), let url = URL(string: server.url) else { fail("there is no server") }
    server.serve(AnswerScript(answers: [Self.long]))
    let source = HTTPSource { $0.proxy = .none }
    for number in 0..<30 {
      let reply = try await source.open(SourceRequest(url: url))
      if number % 2 == 0 { expect(try await read(reply) == 300_000, "the body is not complete") }
    }
  }

  @Sendable func stress() async throws {
    let answers = [Self.long, Self.short, Self.endless, Self.answer(Self.ok + "\r\n", bytes: 70_000), []]
    try await repeated(times: 10, AnswerScript(answers: answers + answers, ending: .idle(milliseconds: 20))) {
      session, url, server in
      await withTaskGroup(of: Void.self) { group in
        for number in 0..<60 {
          group.addTask {
            let task = Task {
              let reply = try await session.open(SourceRequest(url: url))
              _ = try await read(reply) { _ in if number % 7 == 0 { throw SinkError() } }
            }
            try? await Task.sleep(for: .microseconds(number * 97 % 4000))
            task.cancel()
            _ = await task.result
          }
        }
      }
    }
  }

  @Sendable func decoders() async throws {
    let context = ProcessingContext(
      request: DownloadRequest(URL(filePath: "/file")), workspace: nil)
    for (coding, base64) in Seeds.coded {
      let bytes = Data(base64Encoded: base64).map(Array.init) ?? []
      for count in 0...bytes.count {
        guard let step = HTTPSource().decoder(for: coding) else { fail("there is no decoder for \(coding)") }
        let input = Artifact(location: .memory(Array(bytes[..<count])), name: "a", size: .known(Int64(count)))
        let error = await error { _ = try await step.process(File(input), in: context) }
        expect((error == nil) == (count == bytes.count), "\(coding), \(count) bytes: \(String(describing: error))")
      }
    }
  }

  /// libcurl cannot make the sockets that wake a lane.
  @Sendable func exhausted() async throws {
    guard let server = AnswerServer(), let url = URL(string: server.url) else { fail("there is no server") }
    server.serve(AnswerScript(answers: [Self.short], ending: Self.hold))
    var usual = rlimit()
    getrlimit(numericCast(RLIMIT_NOFILE.rawValue), &usual)
    var none = usual
    none.rlim_cur = 3
    setrlimit(numericCast(RLIMIT_NOFILE.rawValue), &none)
    var configuration = HTTPSource.Configuration()
    configuration.proxy = .none
    let session = try HTTPSession(configuration, threads: 1)
    // Its thread has begun by then.
    try await Task.sleep(for: .milliseconds(100))
    setrlimit(numericCast(RLIMIT_NOFILE.rawValue), &usual)
    let refusal = await error { _ = try await session.open(SourceRequest(url: url)) }
    expect((refusal as? DownloadError)?.code == .tooManyOpenFiles, "\(String(describing: refusal))")
    expect(try await read(session.open(SourceRequest(url: url))) == 3000, "the body is not complete")
    await session.stop()
  }
}
