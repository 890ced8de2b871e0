import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

/// Downloads that were added with `--untrusted` keep its rules.
@Suite(.endsHangs)
struct TrustTests {
  private let usual = FakeSource(everyURL: .init([1, 2, 3]))
  private let strict = FakeSource(everyURL: .init([1, 2, 3]))

  private func request(_ text: String, isUntrusted: Bool) throws -> DownloadRequest {
    var plan = try GetPlan(urls: [text])
    plan.isUntrusted = isUntrusted
    return try plan.request(for: text)
  }

  /// Runs downloads, and returns their states.
  private func run(_ source: TrustSource, _ requests: [DownloadRequest]) async throws -> [DownloadState] {
    let downloader = try await Downloader {
      source
      MemoryStore()
      MemoryLedger()
      VerifyChecksum()
    }
    try await downloader.add(contentsOf: requests)
    try await downloader.waitUntilIdle()
    let statuses = try await downloader.statuses(of: requests.map(\.id))
    await downloader.shutdown()
    return requests.compactMap { statuses[$0.id]?.state }
  }

  @Test("The mark of each download decides, also when marked and other downloads run together")
  func eachDownload() async throws {
    let requests = try (0..<6).map { try request("http://a/\($0)", isUntrusted: $0.isMultiple(of: 2)) }
    let states = try await run(TrustSource(usual: usual, strict: strict), requests)
    #expect(states.allSatisfy { $0.phase == .finished } && states.count == 6)
    #expect(Set(usual.requests.map(\.url.path)) == ["/1", "/3", "/5"])
    #expect(Set(strict.requests.map(\.url.path)) == ["/0", "/2", "/4"])
    #expect(usual.stops == 1 && strict.stops == 1 && strict.starts.count == 1)
  }

  @Test("A command without such downloads starts one session only")
  func noMark() async throws {
    _ = try await run(TrustSource(usual: usual, strict: strict), [try request("http://a/1", isUntrusted: false)])
    #expect(strict.starts.isEmpty && strict.stops == 0)
  }

  @Test("A client without the rules fetches no such download")
  func noRules() async throws {
    let requests = try [request("http://a/1", isUntrusted: true), request("http://a/2", isUntrusted: false)]
    let states = try await run(TrustSource(usual: usual), requests)
    guard case .failed(let error) = states.first else {
      Issue.record("\(states)")
      return
    }
    #expect(error.code == .invalidRequest && error.message.contains("--untrusted"))
    #expect(usual.requests.map(\.url.path) == ["/2"])
  }

  @Test("A content coding is removed within the limits of the download", arguments: [true, false])
  func decoders(isUntrusted: Bool) async throws {
    struct Recorder: PostProcessor {
      let calls = Watched(0)
      func process(_ input: File, in context: ProcessingContext) async throws -> File {
        calls.update { $0 += 1 }
        return input
      }
    }
    let (first, second) = (Recorder(), Recorder())
    let url = try #require(URL(string: "http://a/1"))
    let script = FakeSource.Script([1, 2, 3]).with { $0.contentCoding = "gzip" }
    let source = TrustSource(
      usual: FakeSource([url: [script]], decoders: ["gzip": first]),
      strict: FakeSource([url: [script]], decoders: ["gzip": second]))
    _ = try await run(source, [try request("http://a/1", isUntrusted: isUntrusted)])
    #expect(first.calls.value == (isUntrusted ? 0 : 1))
    #expect(second.calls.value == (isUntrusted ? 1 : 0))
    #expect(source.decoder(for: "br") == nil)
  }

  @Test("Strangers profit from no option of the command")
  func settings() {
    var settings = NetworkSettings(
      proxy: .url("http://p:1"), proxyLogIn: LogIn(user: "me", password: "word"),
      addresses: [FixedAddress(host: "a.test", port: 80, addresses: ["127.0.0.1"])], maximumRedirects: 3,
      allowsInsecureRedirects: true, maximumSize: 77,
      logIn: LogInSettings(logIn: LogIn(user: "me", password: "word"), netrc: "/netrc", cookieJar: "/jar"),
      tls: TLSSettings(trustRoots: "/roots", certificate: "/me", privateKey: "/key", isInsecure: true))
    settings = settings.forStrangers
    #expect(
      settings
        == NetworkSettings(
          proxy: .none, maximumRedirects: 3, maximumSize: 77, isUntrusted: true,
          tls: TLSSettings(trustRoots: "/roots")))
  }

  @Test("A name and a password are not sent for such a download")
  func logIn() throws {
    let interceptor = try #require(LogInInterceptor(LogInSettings(bearerToken: "t")))
    let sent = try [true, false].map {
      var request = try request("http://a/1", isUntrusted: $0)
      request.logsIn = true
      let asked = SourceRequest(url: request.url, metadata: request.metadata)
      return interceptor.authorized(asked).headers["Authorization"]
    }
    #expect(sent == [nil, "Bearer t"])
  }
}
