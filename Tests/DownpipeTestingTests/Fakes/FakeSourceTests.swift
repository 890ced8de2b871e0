import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct FakeSourceTests {
  private static let url = URL(filePath: "/fake/file")
  private static let bytes = DownloadFixtures.pattern(size: 10_000)

  private func read(_ reply: SourceReply) async throws -> [UInt8] {
    let received = Watched<[UInt8]>([])
    try await reply.body.forEachChunk { chunk in
      received.update { $0 += chunk.withUnsafeBytes { [UInt8]($0) } }
    }
    return received.value
  }

  @Test(arguments: [
    (RequestedRange(from: 0), Coverage.range(0..<10_000, total: .known(10_000))),
    (RequestedRange(from: 9_999), .range(9_999..<10_000, total: .known(10_000))),
    (RequestedRange(from: 10, to: 20), .range(10..<20, total: .known(10_000))),
    (RequestedRange(from: 10, to: 20_000), .range(10..<10_000, total: .known(10_000))),
    (RequestedRange(from: 10_000), .none(.rangeNotSatisfiable(total: .known(10_000)))),
    (RequestedRange(from: 20, to: 10), .whole),
    (RequestedRange(from: -5), .whole),
  ])
  func servesRanges(_ range: RequestedRange, _ coverage: Coverage) async throws {
    let source = FakeSource([Self.url: [.init(Self.bytes)]])
    let reply = try await source.open(SourceRequest(url: Self.url, range: range))
    #expect(reply.coverage == coverage)
    let served = try await read(reply)
    switch coverage {
    case .range(let range, _): #expect(served == Array(Self.bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
    case .whole: #expect(served == Self.bytes)
    default: #expect(served == [])
    }
    #expect(reply.length == .known(Int64(served.count)))
  }

  @Test func servesTheWholeWhenTheValidatorIsAnotherOne() async throws {
    let source = FakeSource([Self.url: [.init(Self.bytes)]])
    let validator = try await source.open(SourceRequest(url: Self.url)).validator
    for (condition, isRange) in [(validator, true), (Validator(entityTag: EntityTag("old")), false)] {
      let reply = try await source.open(
        SourceRequest(url: Self.url, range: RequestedRange(from: 5), validator: condition))
      #expect((reply.coverage != .whole) == isRange)
    }
  }

  @Test func goesThroughItsScriptAndRepeatsTheLast() async throws {
    let source = FakeSource([Self.url: [.status(503, retryAfter: .seconds(3)), .init([1]), .init([2])]])
    let first = try await source.open(SourceRequest(url: Self.url))
    #expect(first.coverage == .none(.status(503)))
    #expect(first.retryAfter == .seconds(3))
    for expected in [1, 2, 2] as [UInt8] {
      #expect(try await read(source.open(SourceRequest(url: Self.url))) == [expected])
    }
    source.script(Self.url, .init([9]))
    #expect(try await read(source.open(SourceRequest(url: Self.url))) == [9])
    #expect(source.requests.count == 5)
  }

  @Test func failsAfterExactlySoManyBytes() async throws {
    let error = DownloadError(.network, "cut")
    let source = FakeSource([Self.url: [FakeSource.Script(Self.bytes).failing(after: 1234, with: error)]])
    let received = Watched<[UInt8]>([])
    let reply = try await source.open(SourceRequest(url: Self.url))
    await #expect(throws: error) {
      try await reply.body.forEachChunk { chunk in
        received.update { $0 += chunk.withUnsafeBytes { [UInt8]($0) } }
      }
    }
    #expect(received.value == Array(Self.bytes[..<1234]))
  }

  @Test func holdsUntilItIsReleased() async throws {
    let source = FakeSource([Self.url: [FakeSource.Script(Self.bytes).holding(after: 100)]])
    let received = Watched(0)
    let task = Task {
      try await source.open(SourceRequest(url: Self.url)).body.forEachChunk { chunk in
        let count = chunk.byteCount
        received.update { $0 += count }
      }
    }
    await source.held(atLeast: 1)
    #expect(received.value == 100)
    #expect(source.readers == 1)
    source.release()
    _ = try await task.value
    #expect(received.value == Self.bytes.count)
    #expect(source.readers == 0)
  }

  @Test func refusesWhatItHasNoScriptFor() async throws {
    let source = FakeSource([Self.url: [.failingToOpen(DownloadError(.timedOut, "late"))]])
    let other = URL(filePath: "/fake/other")
    #expect(!source.accepts(other))
    let unsupported = await #expect(throws: DownloadError.self) {
      _ = try await source.open(SourceRequest(url: other))
    }
    #expect(unsupported?.code == .unsupportedURL)
    let late = await #expect(throws: DownloadError.self) { _ = try await source.open(SourceRequest(url: Self.url)) }
    #expect(late?.code == .timedOut)
    #expect(FakeSource(everyURL: .init([])).accepts(other))
  }

  @Test func recordsStartsAndStops() async throws {
    let source = FakeSource(everyURL: .init(Self.bytes))
    let running = try await source.start(in: SourceContext(concurrentDownloads: 7, downloadsPerHost: 2))
    try await running.open(SourceRequest(url: Self.url, attempt: 3)).body.discard()
    await running.stop()
    #expect(source.starts.map(\.concurrentDownloads) == [7])
    #expect(source.requests.map(\.attempt) == [3])
    #expect(source.discarded == 1)
    #expect(source.stops == 1)
  }
}
