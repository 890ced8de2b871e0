import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// Header fields that an interceptor adds are bound like those of the download's request.
@Suite(.endsHangs)
struct InterceptedFieldsTests {
  private let bytes = DownloadFixtures.pattern(size: 5000)
  private let own = URL(string: "https://a.test/1")!
  private let mirror = URL(string: "https://b.test/2")!
  private let beside = URL(string: "https://A.test:443/3")!

  /// The interceptor of the documentation, with a field that says nothing about the user.
  private let careless = FakeInterceptor { request, next in
    var request = request
    request.headers["Authorization"] = "Bearer secret"
    request.headers["User-Agent"] = "app/1"
    return try await next(request)
  }
  private static let all = ["Authorization", "User-Agent"]
  private static let impersonal = ["User-Agent"]

  private func names(_ requests: [SourceRequest]) -> [[String]] { requests.map { $0.headers.fields.map(\.name) } }

  /// Downloads a file, and returns the requests that the source gets.
  private func requests(
    for request: DownloadRequest, _ scripts: [URL: FakeSource.Script], through interceptors: [FakeInterceptor],
    fetching companion: URL? = nil
  ) async throws -> [SourceRequest] {
    let source = FakeSource(scripts.mapValues { [$0] })
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      FakeStorage()
      FakeRetryPolicy(.giveUp)
      for interceptor in interceptors { interceptor }
      FakePostProcessor<File, File>(name: "Fetch") { file, context in
        if let companion { _ = try await context.fetch(companion, maximumBytes: 10, isNamedByUser: true) }
        return file
      }
    }
    let result = await Result { try await downloader.add(request).value }
    await downloader.shutdown()
    _ = try result.get()
    return source.requests
  }

  @Test func mirrorsGetNone() async throws {
    let sent = try await requests(
      for: DownloadRequest(own, mirrors: [mirror, beside]),
      [own: .status(404), mirror: .status(404), beside: .init(bytes)], through: [careless])
    #expect(sent.map(\.url) == [own, mirror, beside])
    #expect(sent.map(\.downloadURL) == [own, own, own])
    #expect(sent.map(\.isForOwnOrigin) == [true, false, true])
    #expect(names(sent) == [Self.all, Self.impersonal, Self.all])
  }

  @Test func companionsAtOtherOriginsGetNone() async throws {
    for (companion, expected) in [(mirror, Self.impersonal), (beside, Self.all)] {
      let sent = try await requests(
        for: DownloadRequest(own, mirrors: []), [own: .init(bytes), companion: .init([1])], through: [careless],
        fetching: companion)
      #expect(names(sent) == [Self.all, expected])
    }
  }

  @Test("a place that a server has named gets none, even if the interceptor takes the mark away")
  func placesOfAServerGetNone() async throws {
    let unmarking = FakeInterceptor { request, next in
      let new = SourceRequest(url: request.url, id: request.id, headers: ["Authorization": "Bearer secret"])
      return try await next(new)
    }
    var request = DownloadRequest(own)
    request.isNamedByServer = true
    for interceptor in [careless, unmarking] {
      let sent = try await requests(for: request, [own: .init(bytes)], through: [interceptor])
      #expect(sent.map { $0.headers["Authorization"] } == [nil])
      #expect(sent.map(\.isNamedByServer) == [true])
    }
  }

  @Test("a request that is made anew has the origin of the download")
  func aNewRequest() async throws {
    let anew = FakeInterceptor { request, next in
      try await next(SourceRequest(url: request.url, id: request.id, headers: ["Authorization": "Bearer secret"]))
    }
    let sent = try await requests(
      for: DownloadRequest(own, mirrors: [mirror]), [own: .status(404), mirror: .init(bytes)], through: [anew])
    #expect(names(sent) == [["Authorization"], []])
  }

  @Test("an interceptor that leads to another origin loses what is bound, also the fields of the request")
  func anotherURL() async throws {
    let mirror = mirror
    let leading = FakeInterceptor { request, next in
      var request = request
      request.url = mirror
      return try await next(request)
    }
    let request = DownloadRequest(own).with(\.headers, ["X-Key": "secret"])
    for interceptors in [[careless, leading], [leading, careless]] {
      // The download's own URL needs a source, too.
      let sent = try await requests(
        for: request, [own: .status(404), mirror: .init(bytes)], through: interceptors)
      #expect(sent.map(\.url) == [mirror])
      #expect(names(sent) == [Self.impersonal])
    }
  }

  @Test("a scope admits more: one origin, or all of them")
  func scopes() async throws {
    let scoped = FakeInterceptor { request, next in
      var request = request
      let origin = try #require(Origin(request.url))
      let other = try #require(Origin("https://c.test"))
      request.headers.fields += [
        HeaderField("Signature", "for \(origin)", scope: .origin(origin)),
        HeaderField("X-Trace", "1", scope: .everywhere), HeaderField("X-C", "c", scope: .origin(other)),
      ]
      return try await next(request)
    }
    let scripts: [URL: FakeSource.Script] = [own: .status(404), mirror: .init(bytes)]
    let sent = try await requests(for: DownloadRequest(own, mirrors: [mirror]), scripts, through: [scoped])
    #expect(names(sent) == [["Signature", "X-Trace"], ["Signature", "X-Trace"]])
    #expect(sent.last?.headers["Signature"] == "for https://b.test")
    var named = DownloadRequest(own, mirrors: [mirror])
    named.isNamedByServer = true
    #expect(names(try await requests(for: named, scripts, through: [scoped])) == [["X-Trace"], ["X-Trace"]])
  }

  @Test("an inner interceptor sees what is sent")
  func innerInterceptors() async throws {
    let inner = FakeInterceptor()
    let sent = try await requests(
      for: DownloadRequest(own, mirrors: [mirror]), [own: .status(404), mirror: .init(bytes)],
      through: [careless, inner])
    #expect(inner.requests == sent)
    #expect(names(sent) == [Self.all, Self.impersonal])
  }

  @Test func sourcesWithoutHosts() async throws {
    let (own, mirror) = (try #require(URL(string: "greeting:hello")), try #require(URL(string: "greeting:again")))
    let sent = try await requests(
      for: DownloadRequest(own, mirrors: [mirror]), [own: .status(404), mirror: .init(bytes)], through: [careless])
    #expect(names(sent) == [Self.all, Self.impersonal])
  }
}
