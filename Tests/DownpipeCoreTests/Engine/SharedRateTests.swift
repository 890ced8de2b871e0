@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Rates that the downloaders of a ledger share: the engine asks the ledger for shares, and hands them to the policies.
@Suite(.endsHangs)
struct SharedRateTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// Pauses transfers until it has a share, for which it asks each time; a second for each chunk then.
  private final class Sharing: RatePolicy, RateSession {
    struct Taken: Sendable, Equatable {
      var shares: [Int64]
      var asked: Duration
      var now: Duration
    }

    let id: String
    let sharesRates = true
    let taken = Watched<[Taken]>([])
    private let due = Watched(Duration.zero)

    init(id: String = "Sharing") { self.id = id }

    func start(time: any TimeSource) -> any RateSession { self }

    func pause(after bytes: Int, of transfer: TransferContext, at now: Duration) -> Duration {
      guard !taken.value.isEmpty else { return .milliseconds(50) }
      return due.update { due in
        if bytes > 0 { due = now + .seconds(1) }
        return max(.zero, due - now)
      }
    }

    func wants(at now: Duration) -> [RateWant] {
      [
        RateWant(key: "all", rate: .bytesPerSecond(1_000), wanted: 100),
        RateWant(key: "b", rate: .bytesPerSecond(7), wanted: 9),
      ]
    }

    func take(_ shares: [RateShare], askedAt asked: Duration, at now: Duration) {
      taken.update { $0.append(Taken(shares: shares.map(\.bytesPerSecond), asked: asked, now: now)) }
    }
  }

  /// Notes what is wanted.
  private struct Noting: Ledger {
    let base: any Ledger
    var canLease = true
    let wants = Watched<[RateWant]>([])

    struct Store: LedgerStoreWrapper {
      let base: any LedgerStore
      let ledger: Noting
      var leasesRates: Bool { ledger.canLease }

      func leaseRates(_ wants: [RateWant], for duration: Duration, at now: Date) async throws -> [RateShare] {
        ledger.wants.update { $0 += wants }
        return try await base.leaseRates(wants, for: duration, at: now)
      }
    }

    func open() async throws -> any LedgerStore { Store(base: try await base.open(), ledger: self) }
  }

  private func downloader(_ ledger: any Ledger, _ policies: [Sharing]) async throws -> Downloader {
    let source = FakeSource([url: [.init(bytes).with { $0.chunkSize = 10_000 }]])
    return try await Downloader(options: options) {
      source
      for policy in policies { policy }
      storage
      AnyLedger(ledger)
    }
  }

  @Test("The ledger is asked while a transfer runs, and not before and afterwards")
  func demand() async throws {
    let (faulty, policy) = (FaultyLedger(ledger), Sharing())
    let downloader = try await downloader(faulty, [policy])
    try await settle(downloader)
    time.advance(by: .seconds(20))
    try await settle(downloader)
    #expect(!faulty.calls.contains(.leaseRates))
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    let artifact = try await advancing { try await download.value }
    #expect(storage.bytes(of: artifact) == bytes)
    let taken = policy.taken.value
    #expect(taken.count >= 10 && taken.allSatisfy { $0.shares == [100, 7] }, "\(taken)")
    // The last look may be on its way.
    for _ in 0..<3 {
      time.advance(by: .seconds(1))
      try await settle(downloader)
    }
    let calls = faulty.calls.filter { $0 == .leaseRates }.count
    for _ in 0..<20 {
      time.advance(by: .seconds(1))
      try await settle(downloader)
    }
    #expect(faulty.calls.filter { $0 == .leaseRates }.count == calls)
    await downloader.shutdown()
  }

  @Test("A share is valid from the instant before the ledger was asked, and failures are no answers")
  func instants() async throws {
    let (faulty, policy) = (FaultyLedger(ledger), Sharing())
    faulty.fail(.leaseRates, at: 1, times: 2, with: DownloadError(.ledger, "the connection was lost"))
    faulty.hold(.leaseRates, at: 3, .after)
    let downloader = try await downloader(faulty, [policy])
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    for count in 1...2 {
      await faulty.calls(of: .leaseRates, atLeast: count)
      await time.sleeper(dueIn: .seconds(1), purpose: .rates)
      // A transfer is paused all the time, and looks again.
      time.advance(by: .seconds(1))
    }
    await faulty.held(atLeast: 1)
    let asked = time.now
    time.advance(by: .seconds(4))
    #expect(policy.taken.value == [])
    faulty.release()
    await policy.taken.wait { !$0.isEmpty }
    #expect(policy.taken.value.first == .init(shares: [100, 7], asked: asked, now: asked + .seconds(4)))
    _ = try await advancing { try await download.value }
    await downloader.shutdown()
  }

  @Test("Policies with the same keys have rates of their own, and policies that do not share ask for nothing")
  func keys() async throws {
    let (noting, first, second) = (Noting(base: ledger), Sharing(id: "one"), Sharing(id: "two"))
    let downloader = try await downloader(noting, [first, second])
    _ = try await advancing { try await downloader.add(DownloadRequest(url, id: "a")).value }
    #expect(Set(noting.wants.value.map(\.key)) == ["one all", "one b", "two all", "two b"])
    for policy in [first, second] { #expect(policy.taken.value.first?.shares == [100, 7]) }
    await downloader.shutdown()

    struct Free: RatePolicy, RateSession {
      func start(time: any TimeSource) -> any RateSession { self }
      func pause(after bytes: Int, of transfer: TransferContext, at now: Duration) -> Duration { .zero }
    }
    let faulty = FaultyLedger(MemoryLedger())
    let source = FakeSource([url: [.init(bytes)]])
    let free = try await Downloader(options: options) {
      source
      Free()
      storage
      faulty
    }
    _ = try await free.add(DownloadRequest(url, id: "b")).value
    await free.replace(Sharing())
    #expect(!faulty.calls.contains(.leaseRates))
    let next = try await free.add(DownloadRequest(url, id: "c"))
    await faulty.calls(of: .leaseRates, atLeast: 1)
    _ = try await next.cancel()
    await free.shutdown()
  }

  @Test("A ledger that cannot lease shares is refused at the start; a later policy holds for the downloader alone")
  func refusal() async throws {
    let unable = Noting(base: ledger, canLease: false)
    let error = await #expect(throws: DownloadError.self) { try await downloader(unable, [Sharing()]) }
    #expect(error?.code == .invalidPipeline)
    #expect(error?.message.contains("use a rate of this downloader, or a ledger such as PostgresLedger") == true)
    let plain = try await downloader(unable, [])
    let policy = Sharing()
    await plain.replace(policy)
    _ = try await advancing { try await plain.add(DownloadRequest(url, id: "a")).value }
    #expect(policy.taken.value.first?.shares == [1_000, 7], "the whole rates")
    #expect(unable.wants.value == [])
    await plain.shutdown()
  }

  @Test("A shutdown does not wait for a share")
  func shutdown() async throws {
    let (faulty, policy) = (FaultyLedger(ledger), Sharing())
    faulty.hold(.leaseRates)
    let downloader = try await downloader(faulty, [policy])
    _ = try await downloader.add(DownloadRequest(url, id: "a"))
    await faulty.held(atLeast: 1)
    await downloader.shutdown()
    #expect(faulty.calls.filter { $0 == .leaseRates }.count == 1)
    #expect(storage.partials.isEmpty)
  }
}
