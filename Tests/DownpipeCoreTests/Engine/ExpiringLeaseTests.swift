@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Ledgers whose other owners cannot see whether an owner is alive: its leases end although it works.
@Suite(.endsHangs)
struct ExpiringLeaseTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private struct ExpiringLedger: Ledger {
    private struct Store: LedgerStoreWrapper {
      let base: any LedgerStore
      let leasesExpire: Bool
    }

    let base: any Ledger
    var leasesExpire = true

    func open() async throws -> any LedgerStore { Store(base: try await base.open(), leasesExpire: leasesExpire) }
  }

  /// Lets time pass in steps of the downloader's clock, up to an instant, as long as a condition is true.
  private func pass(until end: Duration, _ downloader: Downloader, while condition: () -> Bool = { true }) async throws
  {
    while time.now < end, condition() {
      await time.sleeper(dueIn: options.progressInterval, purpose: .progress)
      time.advance(by: options.progressInterval)
      for _ in 0..<5 { _ = try await downloader.status(of: "no such download") }
    }
  }

  @Test("A run stops before its lease ends if it cannot be renewed, and only then", arguments: [true, false])
  func stopsInTime(leasesExpire: Bool) async throws {
    let faulty = FaultyLedger(ExpiringLedger(base: ledger, leasesExpire: leasesExpire))
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, ledger: faulty)
    let begin = time.now
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    // Nothing reaches the database.
    let failure = DownloadError(.ledger, "the network is cut")
    faulty.fail(.renewLeases, times: 10_000, with: failure)
    faulty.fail(.exchange, at: faulty.calls.count { $0 == .exchange } + 1, times: 10_000, with: failure)
    try await pass(until: begin + .seconds(60), downloader) { source.readers > 0 }
    let passed = time.now - begin
    if leasesExpire {
      #expect(source.readers == 0 && passed >= .seconds(20) && passed < .seconds(30), "\(passed)")
    } else {
      #expect(source.readers == 1)
    }
    await downloader.shutdown()
  }

  @Test("A run goes on for as long as its lease is renewed")
  func renewed() async throws {
    let source = FakeSource(everyURL: .init(bytes).holding(after: 10_000))
    let downloader = try await downloader(source, ledger: ExpiringLedger(base: ledger))
    let begin = time.now
    try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    try await pass(until: begin + .seconds(50), downloader)
    #expect(source.readers == 1)
    source.release()
    try await downloader.waitUntilIdle()
    #expect(source.requests.count == 1)
    await downloader.shutdown()
  }

  @Test("Nothing is published when the process has slept for longer than its lease")
  func sleptTooLong() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let sleeps = Watched(1)
    let (time, storage) = (time, storage)
    let step = FakePostProcessor<File, File>(name: "Sleep") { file, _ in
      let isFirst = sleeps.update { left in
        left -= 1
        return left == 0
      }
      if isFirst { time.advance(by: .seconds(60)) }
      return file
    }
    let faulty = FaultyLedger(ExpiringLedger(base: ledger))
    let downloader = try await Downloader(options: options) {
      source
      step
      storage
      AnyLedger(faulty)
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    // The first attempt ended before the file was in its place.
    #expect(faulty.saves.contains { $0.record.phase == .waiting })
    await downloader.shutdown()
  }

  /// A storage whose first look for an existing file takes a minute, as when the process is stopped meanwhile.
  private struct SleepingStorage: StorageWrapper {
    let base: any Storage
    let time: VirtualTime
    let looks = Watched(0)

    func existing(for request: DownloadRequest) async throws -> Artifact? {
      let isFirst = looks.update { looks in
        looks += 1
        return looks == 1
      }
      if isFirst { time.advance(by: .seconds(60)) }
      return try await base.existing(for: request)
    }
  }

  @Test("Nothing is requested when the process has slept for longer than its lease before")
  func sleptBeforeTheRequest() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let faulty = FaultyLedger(ExpiringLedger(base: ledger))
    let sleeping = SleepingStorage(base: storage, time: time)
    let downloader = try await Downloader(options: options) {
      source
      sleeping
      AnyLedger(faulty)
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(sleeping.looks.value == 2 && source.requests.count == 1)
    await downloader.shutdown()
  }

  /// A source whose first connection takes a minute, as when the process is stopped meanwhile.
  private struct SleepingSource: Source, SourceSession {
    let base: FakeSource
    let time: VirtualTime
    let connections = Watched(0)

    func accepts(_ url: URL) -> Bool { true }

    func open(_ request: SourceRequest) async throws -> SourceReply {
      let isFirst = connections.update { connections in
        connections += 1
        return connections == 1
      }
      if isFirst { time.advance(by: .seconds(60)) }
      try request.lease.check()
      return try await base.open(request)
    }
  }

  @Test("Nothing is requested when the process has slept for longer than its lease while it connected")
  func sleptWhileItConnected() async throws {
    let source = FakeSource(everyURL: .init(bytes))
    let (sleeping, faulty) = (
      SleepingSource(base: source, time: time), FaultyLedger(ExpiringLedger(base: ledger))
    )
    let storage = storage
    let downloader = try await Downloader(options: options) {
      sleeping
      storage
      AnyLedger(faulty)
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(sleeping.connections.value == 2 && source.requests.count == 1)
    await downloader.shutdown()
  }

  @Test("What a ledger renews after a lease has ended may be another owner's by then: the lease stays ended")
  func renewedTooLate() async throws {
    let fixture = try await RunFixture(ledger: ExpiringLedger(base: ledger))
    let run = try fixture.run("a")
    let (begin, lease) = (fixture.time.now, fixture.context.options.lease)
    run.renewLease(until: begin + lease + .seconds(10), at: begin + .seconds(10))
    fixture.time.advance(by: lease + .seconds(9))
    try run.checkLease()
    #expect(run.stopReason == nil)
    fixture.time.advance(by: .seconds(1))
    run.renewLease(until: begin + lease * 3, at: fixture.time.now)
    #expect(throws: CancellationError.self) { try run.checkLease() }
    #expect(run.stopReason == .leaseEnds)
  }
}
