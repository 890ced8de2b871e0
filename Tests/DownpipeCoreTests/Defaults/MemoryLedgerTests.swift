@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

@Suite(.endsHangs)
struct MemoryLedgerTests {
  private let start = Date(timeIntervalSince1970: 1_700_000_000)

  private func addition(_ id: DownloadID, _ order: Int64) throws -> LedgerAddition {
    LedgerAddition(
      request: try DownloadRequest("https://example.org/\(order)", id: id), arrival: order)
  }

  @Test func keepsTheContract() async throws {
    try await LedgerConformance { MemoryLedger() }.run()
  }

  @Test func copiesShareRecordsAndOtherLedgersDoNot() async throws {
    let ledger = MemoryLedger()
    let copy = ledger
    _ = try await ledger.open().add([addition("a", 1)], at: start)
    #expect(try await copy.open().record("a") != nil)
    #expect(try await MemoryLedger().open().record("a") == nil)
  }

  @Test func aDroppedStoreIsADeadOwner() async throws {
    let ledger = MemoryLedger()
    var store: (any LedgerStore)? = try await ledger.open()
    _ = try await store?.add([addition("a", 1)], at: start)
    let claimed = try await store?.lease(LeaseRequest(now: start, until: start.addingTimeInterval(60)) { _ in .take })
    #expect(claimed?.count == 1)
    store = nil

    let next = try await ledger.open()
    #expect(try await next.record("a")?.phase == .transferring)
    #expect(try await next.reclaim(at: start) == 1)
    #expect(try await next.record("a")?.phase == .waiting)
  }

  @Test func aClosedStoreSaysSo() async throws {
    let store = try await MemoryLedger().open()
    try await store.close()
    try await store.close()
    let error = await #expect(throws: DownloadError.self) { try await store.record("a") }
    #expect(error?.code == .ledger)
    #expect(error?.message.contains("closed") == true)
  }

  @Test func manyDownloadsComeInOrder() async throws {
    let store = try await MemoryLedger().open()
    let order = (0..<5_000).map { Int64(($0 * 2_654_435_761) % 5_003) }
    _ = try await store.add(
      order.map { try addition(DownloadID("\($0)"), $0) }, at: start)
    let claimed = try await store.lease(LeaseRequest(now: start, until: start) { _ in .take })
    #expect(claimed.map(\.arrival) == order.sorted())
  }
}
