@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Header fields reach the origin that they were given for, and no other one.
@Suite(.endsHangs)
struct BoundHeadersTests {
  private static let fields = HeaderFields([
    HeaderField("Authorization", "a"), HeaderField("X-Key", "k"), HeaderField("Accept", "*/*"),
    HeaderField("X-All", "x", scope: .everywhere),
  ])
  private static let everywhere = ["Accept", "X-All"]
  private static let all = ["Authorization", "X-Key", "Accept", "X-All"]
  private let bytes = DownloadFixtures.pattern(size: 5000)

  private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  private func names(_ source: FakeSource) -> [[String]] { source.requests.map { $0.headers.fields.map(\.name) } }

  private func run(
    _ source: FakeSource, ledger: any Ledger = MemoryLedger(), refresher: FakeLinkRefresher? = nil,
    attempts: Int = 5, _ body: (Downloader) async throws -> Void
  ) async throws {
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      FakeStorage()
      ledger
      Retry(.constant(.zero, attempts: attempts))
      if let refresher { refresher }
    }
    do {
      try await body(downloader)
      await downloader.shutdown()
    } catch {
      await downloader.shutdown()
      throw error
    }
  }

  @Test func mirrorsOfOtherOriginsGetNoCredentials() async throws {
    let urls = try ["https://a.test/1", "https://b.test/2", "http://a.test/3", "https://A.test:443/4"].map(url)
    var scripts = Dictionary(uniqueKeysWithValues: urls.map { ($0, [FakeSource.Script.status(404)]) })
    scripts[urls[3]] = [.init(bytes)]
    let source = FakeSource(scripts)
    var headers = Self.fields
    headers.fields.append(HeaderField("X-B", "b", scope: .origin(try #require(Origin(urls[1])))))
    try await run(source) { downloader in
      _ = try await downloader.add(DownloadRequest(urls[0], mirrors: Array(urls.dropFirst())).with(\.headers, headers))
        .value
    }
    #expect(source.requests.map(\.url) == urls)
    #expect(names(source) == [Self.all, Self.everywhere + ["X-B"], Self.everywhere, Self.all])
  }

  @Test func sourcesWithoutHostsGetTheirFields() async throws {
    let own = try url("greeting:hello")
    let mirror = try url("greeting:again")
    let source = FakeSource([own: [.status(404)], mirror: [.init(bytes)]])
    try await run(source) { downloader in
      _ = try await downloader.add(DownloadRequest(own, mirrors: [mirror]).with(\.headers, Self.fields)).value
    }
    #expect(names(source) == [Self.all, Self.everywhere])
  }

  /// The fields stay with the origin that they were given for: also in the ledger, and when a link leads back there.
  @Test func freshLinksOfOtherOriginsGetNoCredentials() async throws {
    let first = try url("https://a.test/1")
    let other = try url("https://b.test/2")
    let source = FakeSource([first: [.status(403), .init(bytes)], other: [.status(403)]])
    let calls = CallCounter()
    let refresher = FakeLinkRefresher { _ in FreshLink(calls.next() == 1 ? other : first) }
    let ledger = MemoryLedger()
    try await run(source, ledger: ledger, refresher: refresher, attempts: 2) { downloader in
      let download = try await downloader.add(DownloadRequest(first, id: "a").with(\.headers, Self.fields))
      await #expect(throws: DownloadError.self) { try await download.value }
      let kept = try await download.status.request
      #expect(kept.url == other)
      let origin = try #require(Origin(first))
      #expect(kept.headers.fields.map(\.scope) == [.origin(origin), .origin(origin), .automatic, .everywhere])
    }
    try await run(source, ledger: ledger, refresher: refresher) { downloader in
      let download = try #require(try await downloader.download("a"))
      try await download.resume()
      _ = try await download.value
    }
    let urls = source.requests.map(\.url)
    #expect(urls.first == first && urls.last == first && urls.contains(other))
    #expect(zip(urls, names(source)).allSatisfy { $0.1 == ($0.0 == first ? Self.all : Self.everywhere) })
  }

  @Test func fieldsOfAFreshLinkAreItsOwn() async throws {
    let first = try url("https://a.test/1")
    let other = try url("https://b.test/2")
    let source = FakeSource([first: [.status(403)], other: [.init(bytes)]])
    let refresher = FakeLinkRefresher { _ in FreshLink(other, headers: ["Authorization": "fresh"]) }
    try await run(source, refresher: refresher) { downloader in
      _ = try await downloader.add(DownloadRequest(first).with(\.headers, Self.fields)).value
    }
    #expect(source.requests.last?.headers == ["Authorization": "fresh"])
  }

  @Test(arguments: [true, false])
  func aChangedURLGetsNoCredentials(_ byAdding: Bool) async throws {
    let first = try url("https://a.test/1")
    let other = try url("https://b.test/2")
    let source = FakeSource([first: [.status(404)], other: [.init(bytes)]])
    try await run(source) { downloader in
      let download = try await downloader.add(DownloadRequest(first, id: "a").with(\.headers, Self.fields))
      await #expect(throws: DownloadError.self) { try await download.value }
      if byAdding {
        // The fields were changed since the download was added, and belong to the earlier URL.
        try await downloader.update("a") { $0.headers["X-Key"] = "changed" }
        _ = try await downloader.add(DownloadRequest(other, id: "a").with(\.headers, Self.fields)).value
      } else {
        try await downloader.update("a") { $0.url = other }
        try await download.resume()
        _ = try await download.value
      }
    }
    #expect(source.requests.last?.url == other)
    #expect(names(source).last == Self.everywhere)
  }

  @Test func addedAgainWithItsFields() async throws {
    let first = try url("https://a.test/1")
    let other = try url("https://b.test/2")
    let source = FakeSource([first: [.status(404)], other: [.init(bytes)]])
    try await run(source) { downloader in
      let download = try await downloader.add(DownloadRequest(first, id: "a").with(\.headers, Self.fields))
      await #expect(throws: DownloadError.self) { try await download.value }
      _ = try await downloader.add(DownloadRequest(other, id: "a").with(\.headers, Self.fields)).value
    }
    #expect(names(source).last == Self.all, "the request was made for the new URL, with these fields")
  }

  @Test func eachRedirectIsAnEvent() async throws {
    let first = try url("https://a.test/1")
    let hops = try ["https://b.test/2?token=SECRET", "https://user:SECRET@c.test/3"].map(url)
    let source = FakeSource([first: [.init(bytes).with { $0.redirects = hops }]])
    let observer = RecordingObserver()
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      FakeStorage()
      observer
    }
    _ = try await downloader.add(DownloadRequest(first, id: "a")).value
    await downloader.shutdown()
    let events = observer.events(of: "a")
    let redirects = events.filter { if case .redirected = $0 { true } else { false } }
    #expect(redirects == [.redirected(to: "https://b.test/2?token=…"), .redirected(to: "https://…@c.test/3")])
    let start = try #require(events.firstIndex(of: .started(attempt: 1, from: 0)))
    #expect(events.firstIndex(of: redirects[1]).map { $0 < start } == true)
  }

  @Test func descriptionsHaveNoSecrets() throws {
    let url = try url("https://user:SECRET@a.test/1?token=SECRET")
    let headers: HeaderFields = ["Authorization": "SECRET", "X-Key": "SECRET", "Accept": "text/plain"]
    let request = DownloadRequest(url, id: "a", mirrors: [url]).with(\.headers, headers)
    let texts = [
      "\(headers)", "\(headers.fields)", "\(SourceRequest(url: url, headers: headers))", "\(FreshLink(url))",
      "\(request)", "\(DownloadEvent(request, .removed))", "\([request])", String(reflecting: request),
      String(reflecting: SourceRequest(url: url, headers: headers)), "\(ExpiredLink(request: request, error: nil))",
    ]
    for text in texts { #expect(!text.contains("SECRET"), "\(text)") }
    #expect("\(headers)".contains("text/plain"))
  }
}
