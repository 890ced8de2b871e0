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

    /// Without a media type in the first reply, a log-in page is no other kind. But it is shorter than the bytes on disk, and has
    /// no later date.
    @Test("a log-in page in place of the rest is refused, and a restart takes it", arguments: [nil, "\"page\""])
    func logInPage(tag: String?) async throws {
      var run = ServerMatrixRun()
      let result = try await run.perform { request in
        request.number == 1 ? ServerMatrix.broken() : Self.logIn(tag)
      }
      let notes = [ServerMatrix.cut, .refused(.contentChanged), .failed(.contentChanged, nil)]
      #expect(result.trace.notes == notes)
      #expect(result.file == Self.page, "nothing was known of the media type")
      run.restarts = false
      let refused = try await run.perform { request in
        request.number == 1 ? ServerMatrix.broken() : Self.logIn(tag)
      }
      #expect(refused.file.isEmpty && refused.trace.notes == notes)
      #expect(refused.status.progress.received == 40)
      #expect(
        refused.status.error?.message.hasPrefix("the server now sends 38 bytes of text/html, not 100 bytes") == true)
    }

    @Test("a page is refused where the media type is known, and the bytes stay", arguments: [nil, "\"page\""])
    func pageInPlaceOfAFilm(tag: String?) async throws {
      var run = ServerMatrixRun()
      run.resumed = [.contentChanged]
      let result = try await run.perform {
        Self.interrupted(
          after: ServerMatrix.broken(["ETag": "\"v1\"", "Content-Type": "video/mp4"]), by: Self.logIn(tag), $0)
      }
      #expect(result.file == ServerMatrix.file)
      // The page comes once: the same without a range is the file.
      #expect(result.trace.notes == [ServerMatrix.cut, .refused(.contentChanged)])
      #expect(result.trace.asked.map(\.onDisk) == [0, 40, 40])
    }

    @Test("a log-in page without length and validator is noticed by its bytes, and the server is asked again")
    func logInPageInChunks() async throws {
      let result = try await ServerMatrixRun().perform {
        Self.interrupted(by: .chunked([Self.page], headers: ["Content-Type": "text/html"]), $0)
      }
      #expect(result.file == ServerMatrix.file)
      #expect(result.trace.notes == [ServerMatrix.cut, .refused(.rangeIgnored), .refused(.contentChanged)])
    }

    @Test("a log-in page is refused where the request has the size", arguments: [nil, "\"page\""])
    func logInPageOfAnotherSize(tag: String?) async throws {
      var run = ServerMatrixRun()
      run.change = { $0.expectedSize = 100 }
      let result = try await run.perform { Self.interrupted(by: Self.logIn(tag), $0) }
      #expect(result.file == ServerMatrix.file)
      #expect(result.trace.notes == [ServerMatrix.cut, .refused(.contentChanged)])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", nil])
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
      #expect(result.trace.notes == [ServerMatrix.cut, .refused(.contentChanged)])
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
      #expect(result.trace.notes == [ServerMatrix.cut, .refused(.contentChanged), .failed(.contentChanged, nil)])
      #expect(result.trace.asked.map(\.range) == [nil, "bytes=30-", nil, "bytes=30-"])
      #expect(result.trace.asked.map(\.onDisk) == [0, 40, 40, 40])
    }

    static func logIn(_ tag: String?) -> ScriptedReply {
      var headers: HeaderFields = ["Content-Type": "text/html; charset=utf-8"]
      headers["ETag"] = tag
      return ScriptedReply(200, headers, body: .bytes(page))
    }
  }
}
