import Downpipe
import DownpipeTesting
import Foundation
import Testing

extension EndToEnd {
  /// A log-in page in place of the rest of the file.
  @Suite struct ServerMatrixLogInTests {
    static let page = Array("<html><body>Who are you?</body></html>".utf8)

    /// Cuts the first reply, sends a page once, and then serves the file.
    private static func interrupted(
      after first: ScriptedReply = ServerMatrix.broken(), by page: ScriptedReply, _ request: ScriptedRequest
    ) -> ScriptedReply {
      switch request.number {
      case 1: first
      case 2: page
      default: ServerMatrix.good(ServerMatrix.file, for: request)
      }
    }

    /// Without a media type in the first reply, a log-in page cannot be told from the file: a 200 with another
    /// validator or size is another file. The bytes are never mixed, but the page is published as the file.
    @Test("a log-in page in place of the rest is another file", arguments: [nil, "\"page\""])
    func logInPage(tag: String?) async throws {
      let result = try await ServerMatrixRun().perform { request in
        request.number == 1 ? ServerMatrix.broken() : Self.logIn(tag)
      }
      #expect(result.file == Self.page)
      #expect(result.trace.notes == [ServerMatrix.cut, .restarted(tag == nil ? .sizeChanged : .contentChanged)])
      #expect(result.status.state.phase == .finished)
    }

    @Test("a page is refused where the media type is known, and the bytes stay", arguments: [nil, "\"page\""])
    func pageInPlaceOfAFilm(tag: String?) async throws {
      var run = ServerMatrixRun()
      run.resumed = [.linkExpired]
      let result = try await run.perform {
        Self.interrupted(
          after: ServerMatrix.broken(["ETag": "\"v1\"", "Content-Type": "video/mp4"]), by: Self.logIn(tag), $0)
      }
      #expect(result.file == ServerMatrix.file)
      #expect(result.trace.notes == [ServerMatrix.cut, .failed(.linkExpired, nil)])
      #expect(result.trace.asked.map(\.onDisk) == [0, 40, 40])
    }

    @Test("a log-in page without length and validator is noticed by its bytes, and the server is asked again")
    func logInPageInChunks() async throws {
      let result = try await ServerMatrixRun().perform {
        Self.interrupted(by: .chunked([Self.page], headers: ["Content-Type": "text/html"]), $0)
      }
      #expect(result.file == ServerMatrix.file)
      #expect(result.trace.notes == [ServerMatrix.cut, .refused(.rangeIgnored), .failed(.contentChanged, nil)])
    }

    @Test("a log-in page is refused where the request has the size", arguments: [nil, "\"page\""])
    func logInPageOfAnotherSize(tag: String?) async throws {
      var run = ServerMatrixRun()
      run.change = { $0.expectedSize = 100 }
      let result = try await run.perform { Self.interrupted(by: Self.logIn(tag), $0) }
      #expect(result.file == ServerMatrix.file)
      #expect(result.trace.notes == [ServerMatrix.cut, .failed(.lengthMismatch, nil)])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", "bytes=30-"])
      #expect(result.trace.asked.map(\.onDisk) == [0, 40, 40])
    }

    @Test("a log-in page is never published where the request has the digest", arguments: [nil, "\"page\""])
    func logInPageWithDigest(tag: String?) async throws {
      let digest = try FileDigest.sha256(of: ServerMatrix.file)
      var run = ServerMatrixRun()
      run.verifiesChecksums = true
      run.resumed = [.digestMismatch]
      run.change = { $0.expectedDigests = [digest] }
      let result = try await run.perform { Self.interrupted(by: Self.logIn(tag), $0) }
      #expect(result.file == ServerMatrix.file)
      let reason = DownloadError.Code(tag == nil ? "sizeChanged" : "contentChanged")
      #expect(result.trace.notes.starts(with: [ServerMatrix.cut, .restarted(reason), .failed(.digestMismatch, nil)]))
    }

    @Test("with RefreshURL a log-in page is an expired link, and the bytes stay", arguments: [nil, "\"page\""])
    func logInPageWithRefreshURL(tag: String?) async throws {
      var run = ServerMatrixRun()
      run.refresh = { $0.appending(path: "fresh") }
      let result = try await run.perform { request in
        if request.path.hasSuffix("/fresh") { return ServerMatrix.good(ServerMatrix.file, for: request) }
        return request.number == 1
          ? ServerMatrix.broken(["ETag": "\"v1\"", "Content-Type": "video/mp4"]) : Self.logIn(tag)
      }
      #expect(result.file == ServerMatrix.file)
      #expect(result.trace.notes == [ServerMatrix.cut, .failed(.linkExpired, nil)])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", "bytes=30-"])
      #expect(result.trace.asked.map(\.onDisk) == [0, 40, 40])
    }

    static func logIn(_ tag: String?) -> ScriptedReply {
      var headers: HeaderFields = ["Content-Type": "text/html; charset=utf-8"]
      headers["ETag"] = tag
      return ScriptedReply(200, headers, body: .bytes(page))
    }
  }
}
