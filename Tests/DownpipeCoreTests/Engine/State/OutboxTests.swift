@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Outcomes that wait to be saved in the ledger.
@Suite(.endsHangs)
struct OutboxTests {
  private let failure = DownloadError(.ledger, "the disk is full")

  @Test func anExchangeTakesAlongWhatWaitsAndWhatComesMeanwhileWaits() async throws {
    let fixture = try await RunFixture()
    let (first, second) = (try await fixture.leased("a"), try await fixture.leased("b"))
    var outbox = Outbox()
    #expect(outbox.isEmpty && !outbox.isExchanging)
    first.update { _ = $0.apply(.pause) }
    outbox.append(.init(run: first, state: .paused))
    #expect(!outbox.isEmpty)
    let exchange = outbox.begin(nil)
    #expect(outbox.isExchanging && outbox.waiting.isEmpty && !outbox.isEmpty)
    outbox.append(.init(run: second, state: .paused))
    let answer = await exchange.perform(in: fixture.context)
    #expect(answer.unsaved.map(\.run.id) == ["a"])
    #expect(try answer.result.get().saved == [true])
    #expect(answer.exchange.first == nil, "nothing was leased")
    outbox.succeeded()
    #expect(outbox.waiting.map(\.run.id) == ["b"])
    #expect(try await fixture.store.record("a")?.phase == .paused)
    #expect(try await fixture.store.record("b")?.phase == .transferring)
  }

  @Test func anExchangeThatHasFailedIsMadeAgainBeforeAnyOther() async throws {
    let ledger = FaultyLedger(MemoryLedger())
    let fixture = try await RunFixture(ledger: ledger)
    let (first, second) = (try await fixture.leased("a"), try await fixture.leased("b"))
    ledger.fail(.exchange, at: 1, times: 2, with: failure)
    var outbox = Outbox()
    outbox.append(.init(run: first, state: .waiting(.turn)))
    let exchange = outbox.begin(nil)
    outbox.append(.init(run: second, state: .waiting(.turn)))
    let answer = await exchange.perform(in: fixture.context)
    #expect(throws: DownloadError.self) { try answer.result.get() }
    outbox.fail(answer.exchange, failure)
    #expect(outbox.next.map(\.run.id) == ["a"] && outbox.waiting.map(\.run.id) == ["b"] && outbox.count == 2)
    #expect(!outbox.isExchanging)
    #expect(outbox.failures == 1 && outbox.lastError == failure)
    outbox.noteFailure(failure)
    #expect(outbox.failures == 2)
    let again = outbox.begin(nil)
    #expect(again.number == exchange.number && again.isRepeated && again.unsaved.map(\.run.id) == ["a"])
    outbox.succeeded()
    #expect(outbox.failures == 0 && outbox.next.map(\.run.id) == ["b"])
    let next = outbox.begin(nil)
    #expect(next.number > exchange.number && !next.isRepeated)
    outbox.succeeded()
    #expect(outbox.isEmpty)
  }

  @Test func leasesComeWithTheAnswer() async throws {
    let fixture = try await RunFixture()
    let request = try DownloadRequest("https://example.org/a", id: "a")
    _ = try await fixture.store.add([LedgerAddition(request: request, arrival: 1)], at: fixture.time.date)
    var outbox = Outbox()
    let now = fixture.time.date
    let exchange = outbox.begin(LeaseRequest(now: now, until: now + 30, select: { _ in .take }))
    let answer = await exchange.perform(in: fixture.context)
    #expect(try answer.result.get().leased.map(\.id) == ["a"])
    #expect(answer.exchange.first?.now == now)
  }

  @Test(
    "on a full disk the partial of a download that failed for it is truncated once, unless its outcome was saved",
    arguments: [false, true])
  func roomForTheLedger(isSaved: Bool) async throws {
    let ledger = FaultyLedger(MemoryLedger())
    let fixture = try await RunFixture(ledger: ledger)
    let run = try await fixture.leased("a")
    let size: Int64 = 600 << 10
    let partial = try await fixture.storage.openPartial(run.key, isNew: false)
    try partial.write(DownloadFixtures.pattern(size: Int(size)).span.bytes, at: 0)
    try partial.close()
    run.update { record in
      record.checkpoint.ranges = ByteRangeSet(0..<size)
      record.apply(.failedForNow)
    }
    ledger.fail(.exchange, at: 1, times: isSaved ? 1 : 2, isSaved ? .after : .before, with: failure)
    var outbox = Outbox()
    let full = DownloadError(.noSpace, "full")
    outbox.append(
      .init(run: run, state: .waiting(.missing(.disk, until: fixture.time.date, after: full))))
    let exchange = outbox.begin(nil)
    let answer = await exchange.perform(in: fixture.context)
    #expect(try answer.result.get().saved == [true])
    if isSaved {
      #expect(fixture.storage.partials[run.key]?.count == Int(size))
      return
    }
    let left = size - (512 << 10)
    #expect(try await fixture.store.record("a")?.checkpoint.ranges.prefixLength == left)
    #expect(fixture.storage.partials[run.key]?.count == Int(left))
    #expect(fixture.storage.openPartials == 0)
    #expect(ledger.calls.count { $0 == .exchange } == 3)
  }
}
