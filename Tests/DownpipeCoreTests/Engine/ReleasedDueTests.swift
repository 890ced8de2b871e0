@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// A download that waits for another one and for a time starts at that time, also if the time was not known to the
/// loop while the other one had not finished.
@Suite(.endsHangs)
struct ReleasedDueTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 1000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  private func request(_ id: DownloadID, after: Set<DownloadID> = []) -> DownloadRequest {
    DownloadRequest(url, id: id, destination: .init(name: id.rawValue)).with(\.after, after)
  }

  /// Fills a ledger with “b”, which waits for “a” and, after a failure in an earlier process, for a time.
  private func fill() async throws {
    let store = try await ledger.open()
    func add(_ request: DownloadRequest) async throws {
      _ = try await store.add([LedgerAddition(request: request, arrival: 1)], at: time.date)
    }
    try await add(request("b"))
    let lease = LeaseRequest(now: time.date, until: time.date + 60) { _ in .take }
    var record = try #require(try await store.lease(lease).first)
    (record.phase, record.notBefore) = (.waiting, time.date + 10)
    #expect(try await store.save(record, .state, at: time.date))
    try await add(request("b", after: ["a"]))
    #expect(try await store.record("b")?.waitsFor == ["a"])
    #expect(try await store.record("b")?.notBefore == time.date + 10)
    try await store.close()
  }

  enum Release: CaseIterable { case finished, updated, updatedAll, addedAgain }

  @Test("a released download starts at its due time", arguments: Release.allCases)
  func startsInTime(_ release: Release) async throws {
    try await fill()
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)))
    // The loop has set its timer for the downloads that wait for no other one.
    try await settle(downloader)
    switch release {
    case .finished: _ = try await downloader.add(request("a")).value
    case .updated: try await downloader.update("b") { $0.after = [] }
    case .updatedAll: #expect(try await downloader.updateAll { $0.after = [] } == 1)
    case .addedAgain: try await downloader.add(request("b"))
    }
    await time.sleeper(dueIn: .seconds(10), purpose: .dueTime)
    time.advance(by: .seconds(10))
    _ = try await downloader.download("b")?.value
    #expect(time.now == .seconds(10))
    #expect(try await downloader.status(of: "b")?.state.phase == .finished)
    await downloader.shutdown()
  }

  @Test("downloads that finish without releasing others with a due time cost no search for one")
  func costsNothing() async throws {
    let ledger = FaultyLedger(ledger)
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), ledger: ledger)
    try await settle(downloader)
    let before = ledger.calls.count { $0 == .nextDue }
    for number in 0..<20 { _ = try await downloader.add(request(DownloadID("\(number)"))).value }
    try await downloader.add(contentsOf: [request("y", after: ["x"]), request("x")])
    try await downloader.waitUntilIdle()
    #expect(ledger.calls.count { $0 == .nextDue } == before)
    await downloader.shutdown()
  }
}
