import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Stages that return numbers which no file and no clock has: the download fails with the name of the stage, or the number
/// is moved into its range, and the process goes on.
@Suite(.endsHangs)
struct ImpossibleNumbersTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  // MARK: Sources

  /// What a source says of its reply.
  enum Claim: CaseIterable {
    case length, total, offset, totalOfNothing, claimedTotal, claimedRange

    func apply(to reply: inout SourceReply) {
      switch self {
      case .length: reply.length = .known(-1)
      case .total: reply.coverage = .range(0..<100_000, total: .known(.min))
      case .offset: reply.coverage = .range(-1..<100_000, total: .unknown)
      case .totalOfNothing: reply.coverage = .none(.rangeNotSatisfiable(total: .known(-5)))
      case .claimedTotal: reply.claimedRange = .range(0..<100_000, total: .known(-5))
      case .claimedRange: reply.claimedRange = .range(.min..<(.max), total: .unknown)
      }
    }
  }

  private struct Liar: Source, SourceSession {
    let claim: Claim
    let bytes: [UInt8]
    let discarded = Watched(false)

    func accepts(_ url: URL) -> Bool { true }
    func open(_ request: SourceRequest) async throws -> SourceReply {
      let body = Body(discard: { [discarded] in discarded.update { $0 = true } }) { [bytes] sink in
        try sink(bytes.span.bytes)
      }
      var reply = SourceReply(coverage: .whole, body: body)
      claim.apply(to: &reply)
      return reply
    }
  }

  @Test("a reply with negative numbers fails with the name of its source", arguments: Claim.allCases)
  func replies(claim: Claim) async throws {
    let source = Liar(claim: claim, bytes: bytes)
    let downloader = try await Downloader(options: options) {
      source
      FakeRetryPolicy(.giveUp)
      storage
      ledger
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    let error = await #expect(throws: DownloadError.self) { try await download.value }
    #expect(error?.code == .invalidResponse && error?.stage == "Liar")
    #expect(source.discarded.value)
    await downloader.shutdown()
  }

  @Test("a negative count is an unknown one, also for the sums of running downloads")
  func counts() {
    #expect(ByteCount.known(-1).bytes == nil)
    var running = RunningDownloads()
    running.insert(Candidate(size: .known(-1)))
    #expect(running.bytes == 0 && running.unknownSizes == 1)
    running.remove(Candidate(size: .known(-1)))
    #expect(running == RunningDownloads())
  }

  // MARK: Retry policies

  @Test(
    "a delay is limited to 0 … 365 days",
    arguments: [
      (Duration.seconds(-5), Duration.zero), (.seconds(Int64.min), .zero), (.seconds(7), .seconds(7)),
      (.seconds(400 * 86_400), .seconds(365 * 86_400)), (.seconds(Int64.max), .seconds(365 * 86_400)),
    ])
  func delays(delay: Duration, expected: Duration) throws {
    let now = Date(timeIntervalSince1970: 1_000_000)
    for decision in [RetryDecision.resume(after: delay), .restart(after: delay), .wait(for: .network, atMost: delay)] {
      var record = DownloadRecord(
        request: DownloadRequest(url, id: "a"), generation: 1, arrival: 1, rank: Rank(), createdAt: now)
      record.apply(.leased)
      _ = Outcome.failed(DownloadError(.network, "cut"), decision).apply(
        to: &record, stored: { StoredArtifact($0, in: storage) }, hasRefresher: false, now: now)
      #expect(record.notBefore == now.addingTimeInterval(expected / .seconds(1)), "\(decision)")
    }
  }

  // MARK: Limits and connections

  /// Asks for a number of connections, of at most another one.
  private struct Connections: SegmentPolicy, SegmentSession {
    let maximumConnections: Int
    let wanted: Int

    func start(size: Int64, of transfer: TransferContext) -> (any SegmentSession)? { self }
    func connections(after measurement: SegmentMeasurement) -> Int { wanted }
  }

  @Test(
    "numbers of connections are moved into their range",
    arguments: [(Int.max, Int.max), (.max, .min), (4, .max), (4, 0), (.min, 5), (0, 0)])
  func connections(maximum: Int, wanted: Int) async throws {
    let bytes = DownloadFixtures.pattern(size: 4 << 20)
    // The other replies are held, too: a second connection for what the first one holds could end the file before the
    // second measurement.
    let source = FakeSource([url: [.init(bytes).holding(after: 400_000), .init(bytes).holding(after: 1)]])
    let downloader = try await Downloader(options: options) {
      source
      Connections(maximumConnections: maximum, wanted: wanted)
      FakeRetryPolicy(.giveUp)
      storage
      ledger
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    // Two measurements.
    for _ in 0..<(maximum > 1 ? 2 : 0) {
      await time.sleeper(dueIn: .milliseconds(250), purpose: .segments)
      time.advance(by: .milliseconds(250))
    }
    source.release()
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()
  }

  @Test("limits below 1 count as 1")
  func limits() {
    let pipeline = Pipeline {
      FakeSource([:])
      FakeAdmissionPolicy(maximumConcurrent: .min, maximumPerHost: 0)
      storage
    }
    #expect(pipeline.limitPerHost == 1)
    #expect(pipeline.sourceContext == SourceContext(concurrentDownloads: 1, downloadsPerHost: 1))
  }

  // MARK: Storages

  /// A storage that says once that there is more room than there can be, and then that less than none is left.
  private struct Overfull: StorageWrapper {
    let base: any Storage
    let calls = CallCounter()
    func availableBytes() async throws -> Int64? { calls.next() == 1 ? .max : .min }
  }

  private struct Reserve: Gate {
    func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws { publish(.open) }
    func room(for candidate: Candidate) async throws -> Int64? { candidate.priority == .high ? .max : .min }
  }

  @Test("a storage with less than no room, and a gate that leaves less than none: a download waits for space")
  func room() async throws {
    let large = DownloadFixtures.pattern(size: 2 << 20)
    let observer = RecordingObserver()
    let source = FakeSource(everyURL: .init(large).holding(after: 100_000))
    let downloader = try await Downloader(options: options) {
      source
      Reserve()
      FakeRetryPolicy(.wait(for: .disk, atMost: .seconds(60)))
      Overfull(base: storage)
      observer
      ledger
    }
    // The first one claims room, so that there is less than the storage says.
    try await downloader.add(DownloadRequest(url, id: "a", priority: .high))
    await source.held(atLeast: 1)
    try await downloader.add(DownloadRequest(url.appending(path: "b"), id: "b"))
    let waits = await observer.wait { events in
      events.contains { event in
        guard event.id == "b", case .state(.waiting(.missing(.disk, _, let error))) = event.kind else { return false }
        return error.stage == "Reserve"
      }
    }
    #expect(waits)
    await downloader.shutdown()
  }

  // MARK: Ledgers

  /// A ledger that gives fewer answers than it is asked for.
  private struct Forgetful: Ledger {
    let base: any Ledger
    let answersAdditions: Bool

    func open() async throws -> any LedgerStore {
      Store(base: try await base.open(), answersAdditions: answersAdditions)
    }

    struct Store: LedgerStoreWrapper {
      let base: any LedgerStore
      let answersAdditions: Bool

      func add(_ additions: [LedgerAddition], at now: Date, number: Int64?) async throws -> [LedgerAddOutcome] {
        let outcomes = try await base.add(additions, at: now, number: number)
        return answersAdditions ? outcomes : []
      }
      func exchange(
        _ saves: [LedgerSave], leasing request: LeaseRequest?, at now: Date, number: Int64?
      ) async throws -> LedgerExchange {
        var exchange = try await base.exchange(saves, leasing: request, at: now, number: number)
        exchange.saved = []
        return exchange
      }
    }
  }

  @Test("a ledger that answers for another number of additions has failed")
  func missingAdditions() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let downloader = try await downloader(
      source, ledger: Forgetful(base: ledger, answersAdditions: false), startsSuspended: true)
    let error = await #expect(throws: DownloadError.self) { try await downloader.add(DownloadRequest(url, id: "a")) }
    #expect(error?.code == .ledger && error?.stage == "AnyLedger")
    await downloader.shutdown()
  }

  @Test("a ledger that does not say what it has saved has failed: the outcome is saved again")
  func missingSaves() async throws {
    let observer = RecordingObserver()
    let downloader = try await downloader(
      FakeSource(everyURL: .init(bytes)), observers: [observer],
      ledger: Forgetful(base: ledger, answersAdditions: true))
    try await downloader.add(DownloadRequest(url, id: "a"))
    let failed = await observer.wait { events in
      events.contains { event in
        guard case .attemptFailed(let error) = event.kind else { return false }
        return error.code == .ledger && error.message.contains("answers")
      }
    }
    #expect(failed)
    await downloader.shutdown()
  }
}
