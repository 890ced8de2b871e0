import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Resuming with all kinds of servers, and waiting for missing resources.
@Suite(.endsHangs)
struct ResumeTests {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let cut = DownloadError(.network, "cut")

  func downloader(
    _ source: FakeSource, retry: any RetryPolicy = FakeRetryPolicy { _ in .resume(after: .zero) },
    observer: RecordingObserver = RecordingObserver(), gate: FakeGate? = nil, refresher: FakeLinkRefresher? = nil
  ) async throws -> Downloader {
    try await Downloader(
      options: DownloaderOptions(
        time: time, random: { 0.5 }, resumeValidation: .overlap(1000), lease: .seconds(600))
    ) {
      source
      if let gate { gate }
      if let refresher { refresher }
      AnyRetryPolicy(retry)
      storage
      observer
    }
  }

  private func refusals(_ observer: RecordingObserver, of id: DownloadID) -> [DownloadError.Code] {
    observer.events(of: id).compactMap { if case .refused(let error) = $0 { error.code } else { nil } }
  }

  // MARK: Servers

  @Test("a server that ignores ranges sends the whole file: the bytes on disk are kept and compared")
  func ignoredRanges() async throws {
    let rangeless = FakeSource.Script(bytes).with { $0.honoursRanges = false }
    // The second body ends before the end of the first one.
    let source = FakeSource([
      url: [rangeless.failing(after: 60_000, with: cut), rangeless.failing(after: 20_000, with: cut), rangeless]
    ])
    let observer = RecordingObserver()
    let downloader = try await downloader(source, observer: observer)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == bytes)
    // One range is requested; then the server is known to ignore ranges.
    #expect(source.requests.map(\.range) == [nil, RequestedRange(from: 59_000), nil])
    let status = try await download.status
    #expect(status.resumedFrom == 0)
    #expect(status.bytesFetched == 180_000)
    // No byte on disk was written twice or discarded.
    let written = storage.calls.compactMap { $0.operation == .write ? $0.range : nil }
    #expect(written.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } == 100_000)
    #expect(!storage.calls.contains { $0.operation == .truncate })
    await downloader.shutdown()
    #expect(refusals(observer, of: "a") == [.rangeIgnored])
  }

  @Test(
    "a reply with an unusable range does not cost any byte on disk",
    arguments: [
      (Coverage.range(50_000..<100_000, total: .known(100_000)), DownloadError.Code.wrongRange),
      (.range(39_000..<100_001, total: .known(100_000)), .wrongRangeEnd), (.multipart, .multipartRange),
      (.unreadable("bytes"), .unreadableRange), (.none(.rangeNotSatisfiable(total: .unknown)), .rangeNotSatisfiable),
    ])
  func unusableRanges(coverage: Coverage, code: DownloadError.Code) async throws {
    let source = FakeSource([
      url: [
        .init(bytes).failing(after: 40_000, with: cut),
        FakeSource.Script(bytes).with { $0.claimedCoverage = coverage },
        FakeSource.Script(bytes),
      ]
    ])
    let observer = RecordingObserver()
    let downloader = try await downloader(source, observer: observer)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.map(\.range) == [nil, RequestedRange(from: 39_000), nil])
    #expect(try await download.status.attempts == 2, "another form of the request is not another attempt")
    #expect(!storage.calls.contains { $0.operation == .truncate })
    await downloader.shutdown()
    #expect(refusals(observer, of: "a") == [code])
  }

  @Test("a range without a validator is proved by a comparison", arguments: [true, false])
  func rangesWithoutValidator(isSame: Bool) async throws {
    var rest = Array(bytes[39_000...])
    if !isSame { rest[999] ^= 1 }
    let source = FakeSource([
      url: [
        .init(bytes).failing(after: 40_000, with: cut),
        FakeSource.Script(bytes).with {
          $0.validator = nil
          $0.claimedCoverage = .range(39_000..<100_000, total: .known(100_000))
          $0.bytes = rest
          $0.honoursRanges = false
        },
        FakeSource.Script(bytes),
      ]
    ])
    let retry = FakeRetryPolicy { $0.error.code == .contentChanged ? .restart(after: .zero) : .resume(after: .zero) }
    let downloader = try await downloader(source, retry: retry)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.map(\.range) == [nil, RequestedRange(from: 39_000)] + (isSame ? [] : [nil]))
    await downloader.shutdown()
  }

  @Test("no bytes are mixed if a strong entity tag is kept while the content changes", arguments: [39_000, 39_999])
  func aTagThatStays(firstDifference: Int) async throws {
    var other = bytes
    for index in firstDifference..<other.count { other[index] ^= 0xFF }
    let source = FakeSource([
      url: [.init(bytes).failing(after: 40_000, with: cut), .init(other), .init(other)]
    ])
    let retry = FakeRetryPolicy { $0.error.code == .contentChanged ? .restart(after: .zero) : .resume(after: .zero) }
    let downloader = try await downloader(source, retry: retry)
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == other)
    await downloader.shutdown()
  }

  @Test("a server that answers every request with a range is given up, and the bytes are kept")
  func onlyRanges() async throws {
    let liar = FakeSource.Script(bytes).with { $0.claimedCoverage = .range(7..<100_000, total: .known(100_000)) }
    let source = FakeSource([url: [.init(bytes).failing(after: 40_000, with: cut), liar]])
    let downloader = try await downloader(source, retry: Retry(.constant(.zero, attempts: 3)))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.code == .wrongRange }
    #expect(try await download.status.progress.received == 40_000)
    await downloader.shutdown()
  }

  // MARK: Links

  @Test func aDeadLinkIsRenewedAndTheBytesStay() async throws {
    let fresh = try #require(URL(string: "https://cdn.example.net/other?sig=2"))
    let source = FakeSource([
      url: [.init(bytes).failing(after: 40_000, with: cut), .status(403)], fresh: [.init(bytes)],
    ])
    let refresher = FakeLinkRefresher { expired in
      #expect(expired.received == 40_000)
      #expect(expired.error?.httpStatus == 403)
      return FreshLink(fresh, headers: ["X-Token": "2"])
    }
    let observer = RecordingObserver()
    let downloader = try await downloader(
      source, retry: Retry(.constant(.zero, attempts: 3)), observer: observer, refresher: refresher)
    let download = try await downloader.add(DownloadRequest(url, id: "a").with(\.headers, ["X-Token": "1"]))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.map(\.url) == [url, url, fresh])
    // An entity tag applies to one resource only, so some bytes are compared.
    #expect(source.requests.last?.range == RequestedRange(from: 39_000))
    #expect(source.requests.last?.headers["X-Token"] == "2")
    #expect(try await download.status.request.url == fresh, "the refreshed link is kept")
    await downloader.shutdown()
    #expect(observer.events(of: "a").contains(.linkRefreshed(to: "https://cdn.example.net/other?sig=…")))
  }

  @Test func linksThatStayDeadAreGivenUp() async throws {
    let source = FakeSource([url: [.status(410)]])
    let refresher = FakeLinkRefresher { [url] _ in FreshLink(url) }
    let downloader = try await downloader(
      source, retry: Retry(.constant(.zero, attempts: 3)), refresher: refresher)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.httpStatus == 410 }
    #expect(source.requests.count == 3)
    await downloader.shutdown()
  }

  @Test func whoCannotRenewALinkIsAskedAgain() async throws {
    struct NotToday: Error {}
    let source = FakeSource([url: [.status(401), .init(bytes)]])
    let calls = CallCounter()
    let refresher = FakeLinkRefresher { [url] _ in
      if calls.next() == 1 { throw NotToday() }
      return FreshLink(url)
    }
    let downloader = try await downloader(
      source, retry: Retry(.constant(.zero, attempts: 5)), refresher: refresher)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.count == 2)
    await downloader.shutdown()
  }

  @Test func withoutARefresherADeadLinkIsAFailure() async throws {
    let source = FakeSource([url: [.status(403)]])
    let downloader = try await downloader(source, retry: Retry(.constant(.zero, attempts: 3)))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { ($0 as? DownloadError)?.httpStatus == 403 }
    #expect(source.requests.count == 1)
    await downloader.shutdown()
  }

  @Test func withoutARefresherTheMirrorsAreAsked() async throws {
    let mirror = try #require(URL(string: "https://mirror.example.net/file.bin"))
    let source = FakeSource([url: [.status(403)], mirror: [.init(bytes)]])
    let downloader = try await downloader(source, retry: Retry(.constant(.zero, attempts: 3)))
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror]))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.map(\.url) == [url, mirror])
    await downloader.shutdown()
  }

  @Test func whenThereIsNoWayToOnePlaceTheNextIsAsked() async throws {
    let mirror = try #require(URL(string: "https://mirror.example.net/file.bin"))
    let source = FakeSource([url: [.failingToOpen(DownloadError(.offline, "no route"))], mirror: [.init(bytes)]])
    let downloader = try await downloader(source, retry: Retry(.constant(.zero, attempts: 3)))
    let download = try await downloader.add(DownloadRequest(url, id: "a", mirrors: [mirror]))
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }

  @Test(
    "a reply without a length has to end where the file is known to end",
    arguments: [80_000, 100_000])
  func aWholeOfNoLength(count: Int) async throws {
    let source = FakeSource([
      url: [
        .init(bytes).failing(after: 50_000, with: cut),
        FakeSource.Script(Array(bytes[..<count])).with {
          $0.validator = nil
          $0.honoursRanges = false
          $0.announcesLength = false
        },
        .init(bytes),
      ]
    ])
    let downloader = try await downloader(source)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.count == (count == 100_000 ? 2 : 3))
    await downloader.shutdown()
  }

  // MARK: What is missing

  @Test func theNetworkIsWaitedForAndAGateThatOpensEndsTheWait() async throws {
    let offline = DownloadError(.offline, "no route")
    let source = FakeSource([url: [.failingToOpen(offline), .failingToOpen(offline), .init(bytes)]])
    let gate = FakeGate()
    let downloader = try await downloader(source, retry: Retry(.constant(.seconds(1), attempts: 2)), gate: gate)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await time.sleeper(dueIn: .seconds(30))
    // The timer is set before the state is told.
    while try await download.status.state.phase != .waiting { await Task.yield() }
    guard case .waiting(.missing(.network, _, let error)) = try await download.status.state else {
      Issue.record("\(try await download.status.state)")
      return
    }
    #expect(error.code == .offline)
    // No gate has reported a network: the download is retried when it is due.
    time.advance(by: .seconds(30))
    await source.requests(atLeast: 2)
    // The second time a gate has reported a network.
    await time.sleeper(dueIn: .seconds(30))
    gate.close("down")
    gate.open()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(time.now == .seconds(30))
    await downloader.shutdown()
  }

  @Test func whoWatchesAWaitingDownloadLearnsWhatAGateSays() async throws {
    let gate = FakeGate(.closed("at first"))
    let downloader = try await downloader(FakeSource([url: [.init(bytes)]]), gate: gate)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await gate.watchers(atLeast: 1)
    var hasClosed = false
    for await event in download.events {
      if event.kind == .state(.waiting(.gate(id: "FakeGate", text: "FakeGate: it is night"))) { break }
      if !hasClosed {
        hasClosed = true
        gate.close("it is night")
      }
    }
    gate.open()
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }

  @Test("a due time that passes behind a closed gate is not checked repeatedly")
  func aClosedGateIsNotPolled() async throws {
    let ledger = FaultyLedger(MemoryLedger())
    let gate = FakeGate()
    let source = FakeSource([url: [.failingToOpen(cut), .init(bytes)]])
    let downloader = try await Downloader(
      options: DownloaderOptions(time: time, random: { 0.5 }, lease: .seconds(600))
    ) {
      source
      gate
      Retry(.constant(.seconds(3), attempts: 5))
      storage
      ledger
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await time.sleeper(dueIn: .seconds(3))
    gate.close("the network is gone")
    time.advance(by: .seconds(10))
    // Status calls wake the engine's loop, too.
    for _ in 0..<100 { _ = try await download.status }
    #expect(ledger.calls.count { $0 == .nextDue } < 20)
    gate.open()
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }

  @Test func whoeverHoldsThePartialIsWaitedFor() async throws {
    storage.fail(.openPartial, at: 1, with: DownloadError(.inUse, "held"))
    let source = FakeSource([url: [.init(bytes)]])
    let downloader = try await downloader(source, retry: Retry(.constant(.seconds(1), attempts: 2)))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await time.sleeper(dueIn: .seconds(5))
    guard case .waiting(.missing(.owner, _, _)) = try await download.status.state else {
      Issue.record("\(try await download.status.state)")
      return
    }
    time.advance(by: .seconds(5))
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }
}

/// Wraps any retry policy as a stage.
struct AnyRetryPolicy: RetryPolicy {
  let policy: any RetryPolicy
  init(_ policy: any RetryPolicy) { self.policy = policy }
  func decide(_ failure: Failure) -> RetryDecision { policy.decide(failure) }
}
