import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeCore

/// Small files that the steps of several downloads fetch.
@Suite(.endsHangs)
struct CompanionSharingTests {
  private let bytes = DownloadFixtures.pattern(size: 5000)
  private let small = URL(string: "https://a.test/small")!
  private let time = VirtualTime()
  private let found = Watched<[String]>([])

  private func request(_ name: String, _ headers: HeaderFields = []) throws -> DownloadRequest {
    try DownloadRequest("https://a.test/\(name)", id: DownloadID(name)).with(\.headers, headers)
  }

  private func source(_ names: [String], _ scripts: FakeSource.Script...) -> FakeSource {
    FakeSource(
      Dictionary(
        uniqueKeysWithValues: names.map { (URL(string: "https://a.test/\($0)")!, [FakeSource.Script(bytes)]) }
          + [(small, scripts)]))
  }

  /// A downloader whose step fetches the small file, a number of times.
  private func downloader(
    _ source: FakeSource, interceptor: FakeInterceptor = FakeInterceptor(), times: Int = 1, maximum: Int = 100
  ) async throws -> Downloader {
    try await Downloader(options: DownloaderOptions(time: time)) {
      source
      interceptor
      FakeStorage()
      FakeRetryPolicy(.giveUp)
      FakePostProcessor<File, File>(name: "Fetch") { [small, found] file, context in
        for _ in 0..<times {
          let bytes = try await context.fetch(small, maximumBytes: maximum)
          found.update { $0.append(String(decoding: bytes, as: UTF8.self)) }
        }
        return file
      }
    }
  }

  private func script(_ text: String) -> FakeSource.Script { .init(Array(text.utf8)) }

  private func requestsForSmall(_ source: FakeSource) -> [SourceRequest] { source.requests.filter { $0.url == small } }

  @Test("the file is fetched once for downloads with the same fields, and once for each user")
  func credentials() async throws {
    let source = source(["1", "2", "3", "4"], script("one"))
    let downloader = try await downloader(source)
    for (name, token) in [("1", "a"), ("2", "b"), ("3", "a"), ("4", "b")] {
      _ = try await downloader.add(try request(name, ["Authorization": token])).value
    }
    #expect(requestsForSmall(source).map { $0.headers["Authorization"] } == ["a", "b"])
    #expect(found.value == ["one", "one", "one", "one"])
    await downloader.shutdown()
  }

  @Test("what an interceptor adds counts, and it sees the request of each download")
  func interceptors() async throws {
    let source = source(["1", "2", "3"], script("one"))
    let interceptor = FakeInterceptor { request, next in
      var request = request
      request.headers["X-User"] = request.id == "2" ? "b" : "a"
      return try await next(request)
    }
    let downloader = try await downloader(source, interceptor: interceptor)
    for name in ["1", "2", "3"] { _ = try await downloader.add(try request(name)).value }
    #expect(requestsForSmall(source).map { $0.headers["X-User"] } == ["a", "b"])
    #expect(interceptor.requests.count { $0.url == small } == 3)
    await downloader.shutdown()
  }

  @Test("a stale copy is confirmed or replaced by its server")
  func staleCopies() async throws {
    let source = source(["1", "2", "3"], script("one"), script("one"), script("two"))
    let downloader = try await downloader(source)
    for name in ["1", "2", "3"] {
      _ = try await downloader.add(try request(name)).value
      time.advance(by: .seconds(60))
    }
    let requests = requestsForSmall(source)
    #expect(requests.map { $0.condition != nil } == [false, true, true])
    #expect(requests.last?.conditionSize == 3)
    #expect(found.value == ["one", "one", "two"])
    await downloader.shutdown()
  }

  @Test("a step that asks again gets what the server has, unless its own request was the latest")
  func askingAgain() async throws {
    let source = source(["1", "2"], script("one"), script("two"))
    let downloader = try await downloader(source, times: 2)
    _ = try await downloader.add(try request("1")).value
    #expect(found.value == ["one", "one"] && requestsForSmall(source).count == 1)
    _ = try await downloader.add(try request("2")).value
    #expect(found.value == ["one", "one", "one", "two"])
    #expect(requestsForSmall(source).map(\.condition) == [nil, nil])
    await downloader.shutdown()
  }

  @Test("the limit is that of each download")
  func limits() async throws {
    let source = source(["1", "2"], script("four"))
    let sizes = Mutex([4, 3])
    let downloader = try await Downloader(options: DownloaderOptions(time: time)) {
      source
      FakeStorage()
      FakeRetryPolicy(.giveUp)
      FakePostProcessor<File, File>(name: "Fetch") { [small] file, context in
        _ = try await context.fetch(small, maximumBytes: sizes.withLock { $0.removeFirst() })
        return file
      }
    }
    _ = try await downloader.add(try request("1")).value
    let second = try await downloader.add(try request("2"))
    #expect(await #expect(throws: DownloadError.self) { try await second.value }?.code == .tooLarge)
    await downloader.shutdown()
  }

  @Test("a download that is paused while others wait for its request does not end their wait")
  func pausing() async throws {
    let source = source(["1", "2"], script("one").holding(after: 1), script("two"))
    let downloader = try await downloader(source)
    let first = try await downloader.add(try request("1"))
    await source.held(atLeast: 1)
    let second = try await downloader.add(try request("2"))
    let arrived = second.events
    for await event in arrived {
      if case .state(.processing) = event.kind { break }
    }
    #expect(try await first.pause())
    _ = try await second.value
    try await first.resume()
    _ = try await first.value
    #expect(found.value == ["two", "two"])
    #expect(requestsForSmall(source).map(\.id) == ["1", "2"])
    await downloader.shutdown()
  }

  @Test("a shutdown ends the request, and the downloads that wait for it")
  func shutdown() async throws {
    let source = source(["1", "2"], script("one").holding(after: 1))
    let downloader = try await downloader(source)
    for name in ["1", "2"] { _ = try await downloader.add(try request(name)) }
    await source.held(atLeast: 1)
    await downloader.shutdown()
    #expect(source.readers == 0 && source.stops == 1)
    #expect(requestsForSmall(source).count == 1)
    #expect(found.value.isEmpty)
  }
}
