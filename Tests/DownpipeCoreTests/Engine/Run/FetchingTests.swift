import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeCore

/// Small files that a step fetches.
@Suite(.endsHangs)
struct FetchingTests {
  private let bytes = DownloadFixtures.pattern(size: 5000)
  private let url = URL(string: "https://a.test/file")!
  private let small = URL(string: "https://a.test/small")!
  private let other = URL(string: "https://b.test/small")!

  private struct Outcome {
    var result: Result<[UInt8], any Error>
    var requests: [SourceRequest]
    var discarded: Int
  }

  /// A step that fetches one file.
  private func fetch(
    _ target: URL, _ script: FakeSource.Script, maximum: Int = 100, isNamedByUser: Bool = false,
    request: DownloadRequest? = nil, interceptor: FakeInterceptor? = nil
  ) async throws -> Outcome {
    let source = FakeSource([url: [.init(bytes)], other: [.status(404)]].merging([target: [script]]) { $1 })
    let found = Mutex<Result<[UInt8], any Error>?>(nil)
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      FakeStorage()
      FakeRetryPolicy(.giveUp)
      if let interceptor { interceptor }
      FakePostProcessor<File, File>(name: "Fetch") { file, context in
        do {
          let bytes = try await context.fetch(target, maximumBytes: maximum, isNamedByUser: isNamedByUser)
          found.withLock { $0 = .success(bytes) }
        } catch {
          found.withLock { $0 = .failure(error) }
        }
        return file
      }
    }
    _ = try await downloader.add(request ?? DownloadRequest(url)).value
    await downloader.shutdown()
    return Outcome(
      result: try #require(found.withLock { $0 }), requests: source.requests, discarded: source.discarded)
  }

  @Test func bytesOfTheFile() async throws {
    let outcome = try await fetch(small, .init([1, 2, 3]))
    #expect(try outcome.result.get() == [1, 2, 3])
    #expect(outcome.requests.map(\.url) == [url, small])
    #expect(try await fetch(small, .init([])).result.get() == [])
    let chunks = FakeSource.Script(Array(0..<100)).with {
      $0.chunkSize = 7
      $0.announcesLength = false
    }
    #expect(try await fetch(small, chunks).result.get() == Array(0..<100))
  }

  @Test("credentials go to the origin of the request, and to others only what the user has given for them")
  func credentials() async throws {
    var headers: HeaderFields = ["Authorization": "a", "Accept": "*/*"]
    headers.fields.append(HeaderField("X-B", "b", scope: .origin(try #require(Origin(other)))))
    let request = DownloadRequest(url, mirrors: [other]).with(\.headers, headers)
    for (target, isNamedByUser, names, isNamedByServer) in [
      (small, false, ["Authorization", "Accept"], false), (small, true, ["Authorization", "Accept"], false),
      (other, true, ["Accept", "X-B"], false), (other, false, ["Accept"], true),
    ] {
      let outcome = try await fetch(target, .init([1]), isNamedByUser: isNamedByUser, request: request)
      #expect(outcome.requests.last?.headers.fields.map(\.name) == names)
      #expect(outcome.requests.last?.isNamedByServer == isNamedByServer)
    }
  }

  @Test("a request that a server has named gives its credentials to no place, and neither does what is beside it")
  func placesOfAServer() async throws {
    let headers = HeaderFields([
      HeaderField("Authorization", "a"), HeaderField("Accept", "*/*"),
      HeaderField("X-B", "b", scope: .origin(try #require(Origin(other)))),
      HeaderField("X-All", "c", scope: .everywhere),
    ])
    for (mirrors, script) in [([], FakeSource.Script(bytes)), ([other], .status(404))] {
      let source = FakeSource([url: [script], other: [.init(bytes)], small: [.init([1])]])
      var request = DownloadRequest(url, mirrors: mirrors).with(\.headers, headers)
      request.isNamedByServer = true
      let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
        source
        FakeStorage()
        FakeRetryPolicy(.giveUp)
        FakePostProcessor<File, File>(name: "Fetch") { file, context in
          _ = try await context.fetch(.beside("small"), maximumBytes: 1)
          return file
        }
      }
      _ = try await downloader.add(request).value
      await downloader.shutdown()
      #expect(Set(source.requests.map(\.url)) == Set([url, small] + mirrors))
      for sent in source.requests {
        #expect(sent.isNamedByServer && sent.headers.fields.map(\.name) == ["Accept", "X-All"], "\(sent)")
      }
    }
  }

  @Test func interceptorsSeeTheRequest() async throws {
    let interceptor = FakeInterceptor { request, next in
      var request = request
      request.headers["X-Seen"] = "yes"
      return try await next(request)
    }
    let outcome = try await fetch(small, .init([1]), interceptor: interceptor)
    #expect(outcome.requests.last?.headers["X-Seen"] == "yes")
  }

  @Test func tooManyBytes() async throws {
    #expect(try await fetch(small, .init(Array(0..<100))).result.get().count == 100)
    for announces in [true, false] {
      let script = FakeSource.Script(Array(0...100)).with { $0.announcesLength = announces }
      let outcome = try await fetch(small, script)
      let error = #expect(throws: DownloadError.self) { try outcome.result.get() }
      #expect(error?.code == .tooLarge && error?.url == small.absoluteString && error?.stage == "FakeSource")
      #expect(outcome.discarded == 1)
    }
  }

  @Test func failures() async throws {
    let cases: [(FakeSource.Script, DownloadError.Code)] = [
      (.status(404), .httpStatus), (.status(503), .httpStatus),
      (.failingToOpen(DownloadError(.network, "cut")), .network),
      (.failingToOpen(DownloadError(.linkExpired, "403", httpStatus: 403)), .httpStatus),
      (FakeSource.Script([1, 2]).failing(after: 1, with: DownloadError(.network, "cut")), .network),
      (FakeSource.Script([1, 2]).with { $0.claimedLength = .known(3) }, .lengthMismatch),
      (FakeSource.Script([1, 2]).with { $0.claimedCoverage = .range(0..<2, total: .known(9)) }, .invalidResponse),
      (FakeSource.Script([1, 2]).with { $0.contentCoding = "gzip" }, .wrongContentCoding),
    ]
    for (script, code) in cases {
      let error = await #expect(throws: DownloadError.self) { try await fetch(small, script).result.get() }
      #expect(error?.code == code && error?.url == small.absoluteString)
    }
    let unknown = try #require(URL(string: "odd:thing"))
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      FakeStorage()
      FakeRetryPolicy(.giveUp)
      FakePostProcessor<File, File>(name: "Fetch") { file, context in
        _ = try await context.fetch(unknown, maximumBytes: 1)
        return file
      }
    }
    let download = try await downloader.add(DownloadRequest(url))
    let error = await #expect(throws: DownloadError.self) { try await download.value }
    #expect(error?.code == .unsupportedURL)
    await downloader.shutdown()
  }

  @Test("a file is not waited for when the download is paused, and its step runs again later")
  func pausing() async throws {
    let source = FakeSource([
      url: [.init(bytes)], small: [FakeSource.Script([1, 2]).holding(after: 1), .init([1, 2])],
    ])
    let small = small
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      FakeStorage()
      FakeRetryPolicy(.giveUp)
      FakePostProcessor<File, File>(name: "Fetch") { file, context in
        _ = try await context.fetch(small, maximumBytes: 9)
        return file
      }
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    #expect(try await download.pause())
    #expect(source.readers == 0)
    try await download.resume()
    _ = try await download.value
    #expect(source.requests.map(\.url) == [url, small, small])
    await downloader.shutdown()
  }

  @Test("nothing is fetched for a context whose run has ended")
  func endedRun() async throws {
    let kept = Mutex<ProcessingContext?>(nil)
    let source = FakeSource([url: [.init(bytes)], small: [.init([1])]])
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      FakeStorage()
      FakePostProcessor<File, File>(name: "Keep") { file, context in
        kept.withLock { $0 = context }
        return file
      }
    }
    _ = try await downloader.add(DownloadRequest(url)).value
    await downloader.shutdown()
    let context = try #require(kept.withLock { $0 })
    await #expect(throws: CancellationError.self) { try await context.fetch(small, maximumBytes: 1) }
    #expect(source.requests.count == 1)
  }
}
