import DownpipeCore
import DownpipeLinks
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct RefreshURLTests {
  private static let now = Date(timeIntervalSince1970: 1_769_860_800)
  private let stage = RefreshURL(margin: .seconds(10), now: { Self.now }) { _ in throw CancellationError() }

  private func request(_ text: String) throws -> SourceRequest {
    SourceRequest(url: try #require(URL(string: text)))
  }

  @Test(
    arguments: [
      // Expired, about to expire, and with enough time left.
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

  @Test("a fresh link is used even if it has expired by the clock")
  func aFreshLinkIsUsed() async throws {
    var request = try request("https://cdn.example/film?Expires=1000000000")
    request.hasFreshLink = true
    let reply = try await stage.intercept(request) { _ in SourceReply(coverage: .whole, body: .bytes([1])) }
    #expect(reply.coverage == .whole)
  }

  @Test(
    arguments: [
      // A redirect of a link to another kind of file.
      ("https://cdn.example/film.mkv", "text/html", true, true),
      ("https://cdn.example/film.mkv", "text/html; charset=utf-8", true, true),
      ("https://cdn.example/film.mkv", "Application/XHTML+XML", true, true),
      ("https://cdn.example/caf%E9.mkv", "text/html", true, true),
      ("https://cdn.example/caf%E9.html", "text/html", true, false),
      ("https://cdn.example/film.mkv", "text/html", false, false),
      ("https://cdn.example/film.mkv", "video/mp4", true, false),
      ("https://cdn.example/film.mkv", nil, true, false),
      ("https://cdn.example/index.html", "text/html", true, false),
      ("https://cdn.example/film", "text/html", true, false),
    ] as [(String, String?, Bool, Bool)])
  func aLogInPageIsKnown(_ url: String, _ mediaType: String?, _ isRedirected: Bool, _ isPage: Bool) async throws {
    let request = try request(url)
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
    let request = try request("https://cdn.example/film.mkv")
    let reply = try await stage.intercept(request) { _ in
      SourceReply(coverage: .none(.status(403)), mediaType: "text/html", body: .empty)
    }
    #expect(reply.coverage == .none(.status(403)))
  }
}
