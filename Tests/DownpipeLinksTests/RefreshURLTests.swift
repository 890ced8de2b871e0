import DownpipeCore
import DownpipeLinks
import DownpipeTesting
import Foundation
import Testing

@Suite(.timeLimit(.minutes(1)))
struct RefreshURLTests {
  private static let now = Date(timeIntervalSince1970: 1_769_860_800)
  private let stage = RefreshURL(margin: .seconds(10), now: { Self.now }) { _ in throw CancellationError() }

  private func request(_ text: String, mediaTypeOnDisk: String? = nil) throws -> SourceRequest {
    SourceRequest(url: try #require(URL(string: text)), mediaTypeOnDisk: mediaTypeOnDisk)
  }

  @Test(
    arguments: [
      // Over, about to be over, and with time enough.
      (-1, false), (9, false), (10, false), (11, true), (3600, true),
    ])
  func aLinkIsOnlyUsedWhileItLives(_ seconds: Int, _ isUsed: Bool) async throws {
    let time = Int(Self.now.timeIntervalSince1970) + seconds
    let request = try request("https://cdn.example/film?Expires=\(time)")
    let outcome: Result<SourceReply, any Error>
    do {
      outcome = .success(
        try await stage.intercept(request) { _ in SourceReply(coverage: .whole, body: .bytes([1])) })
    } catch {
      outcome = .failure(error)
    }
    switch outcome {
    case .success: #expect(isUsed)
    case .failure(let error):
      #expect(!isUsed)
      #expect((error as? DownloadError)?.code == .linkExpired)
    }
  }

  @Test(
    arguments: [
      // What is on disk tells, whether or not there was a redirect.
      ("https://cdn.example/film", "text/html", "video/mp4", false, true),
      ("https://cdn.example/film", "text/html; charset=utf-8", "video/mp4", true, true),
      ("https://cdn.example/film", "application/xhtml+xml", "application/octet-stream", false, true),
      ("https://cdn.example/film", "video/webm", "video/mp4", true, false),
      ("https://cdn.example/page", "text/html", "text/html", true, false),
      // Nothing on disk: a redirect of a link to something else.
      ("https://cdn.example/film.mkv", "text/html", nil, true, true),
      ("https://cdn.example/film.mkv", "text/html", nil, false, false),
      ("https://cdn.example/film.mkv", "video/mp4", nil, true, false),
      ("https://cdn.example/index.html", "text/html", nil, true, false),
      ("https://cdn.example/film", "text/html", nil, true, false),
      ("https://cdn.example/film.mkv", nil, "video/mp4", true, false),
    ] as [(String, String?, String?, Bool, Bool)])
  func aLogInPageIsKnown(
    _ url: String, _ mediaType: String?, _ onDisk: String?, _ isRedirected: Bool, _ isPage: Bool
  ) async throws {
    let request = try request(url, mediaTypeOnDisk: onDisk)
    let reply = SourceReply(
      coverage: .whole, mediaType: mediaType, finalURL: isRedirected ? URL(string: "https://cdn.example/login") : nil,
      body: .bytes([1]))
    do {
      _ = try await stage.intercept(request) { _ in reply }
      #expect(!isPage)
    } catch let error as DownloadError {
      #expect(isPage)
      #expect(error.code == .linkExpired)
      #expect(error.stage == "RefreshURL")
    }
  }

  @Test func anErrorPageIsTheStatusItself() async throws {
    let request = try request("https://cdn.example/film.mkv", mediaTypeOnDisk: "video/mp4")
    let reply = try await stage.intercept(request) { _ in
      SourceReply(coverage: .none(.status(403)), mediaType: "text/html", body: .empty)
    }
    #expect(reply.coverage == .none(.status(403)))
  }
}
