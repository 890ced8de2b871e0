@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The property tests find defects of policies, limits and ledgers, and shorten the sequences that show them.
@Suite(.endsHangs)
struct QueuePropertiesTests {
  /// - Parameter seeds: Many: the first one that shows the defect ends the run, and on a busy machine some show it only now and
  ///   then, because the downloader's tasks run concurrently.
  private func failure(of properties: QueueProperties, seeds: Range<UInt64> = 0..<500) async -> QueuePropertyFailure? {
    do {
      try await properties.run(seeds: seeds)
      return nil
    } catch {
      if !(error is QueuePropertyFailure) { Issue.record("\(error)") }
      return error as? QueuePropertyFailure
    }
  }

  @Test func arrivalHasEveryProperty() async throws {
    try await QueueProperties(bound: { _ in .zero }) { FakeSchedulingPolicy() }.run(seeds: 100..<120)
  }

  @Test func aPolicyThatIsNotPureIsFound() async throws {
    struct Moody: SchedulingPolicy {
      func rank(_ context: RankingContext) -> Rank { Rank().ascending(Int64.random(in: 0...1_000_000)) }
    }
    let found = try #require(await failure(of: QueueProperties { Moody() }))
    #expect(found.property == .ranks)
  }

  @Test func aBoundThatDoesNotHoldIsFound() async throws {
    let properties = QueueProperties(bound: { _ in .seconds(10) }) {
      FakeSchedulingPolicy { Rank().descending($0.priority) }
    }
    let found = try #require(await failure(of: properties))
    #expect(found.property == .bound)
    #expect(found.operations.count <= 8, "\(found)")
    #expect(found.operations.contains { if case .advance = $0 { true } else { false } }, "\(found)")
    // The shortest sequence shows the same defect again; not each time, because the downloader's tasks run concurrently.
    var isShownAgain = false
    for _ in 0..<20 where !isShownAgain {
      do { try await properties.run(found.operations) } catch is QueuePropertyFailure { isShownAgain = true }
    }
    #expect(isShownAgain)
    #expect("\(found)".contains("(seed ") && "\(found)".contains("  .advance(seconds: "))
  }

  @Test func aLimitThatIsIgnoredIsFound() async throws {
    let properties = QueueProperties(limits: { limits in
      FakeAdmissionPolicy { _, running in running.total < limits.concurrent ? .admitted : .full("full") }
    }) { FakeSchedulingPolicy() }
    let found = try #require(await failure(of: properties))
    #expect(found.property == .limits)
    #expect(found.operations.count <= 6, "\(found)")
  }

  @Test func aLimitThatHoldsTooMuchBackIsFound() async throws {
    let properties = QueueProperties(
      limit: .seconds(15),
      limits: { limits in
        FakeAdmissionPolicy { candidate, running in
          QueueProperties.fakeLimits(QueueLimits(concurrent: 1, perHost: 1, even: 1)).admit(candidate, beside: running)
        }
      }
    ) { FakeSchedulingPolicy() }
    // Such a failure is noticed only after some seconds, which shortening repeats.
    do {
      try await properties.run([.add(1), .add(2), .settle])
      Issue.record("not found")
    } catch let found as QueuePropertyFailure {
      #expect(found.property == .slots)
    }
  }

  /// A ledger that leases in the order of arrival and ignores the ranks.
  private struct Unranked: Ledger {
    let base = MemoryLedger()
    func open() async throws -> any LedgerStore { Store(base: try await base.open()) }

    struct Store: LedgerStoreWrapper {
      let base: any LedgerStore
      func rank(by ranking: Ranking) async throws {}
    }
  }

  @Test func aLedgerWithoutRanksIsFound() async throws {
    let properties = QueueProperties(ledger: { Unranked() }) { FakeSchedulingPolicy { Rank().descending($0.priority) } }
    let found = try #require(await failure(of: properties))
    #expect(found.property == .ranks)
    #expect(found.operations.count <= 3, "\(found)")
  }

  @Test("Sequences are printed as Swift source")
  func text() {
    let operations: [QueueOperation] = [
      .add(3, priority: 100, size: 2_000, deadline: 5), .add(1), .start(2, preempting: .oldest), .start(1),
      .limit(QueueLimits(concurrent: 1, perHost: 2, even: 3)), .setPriority(1, -1), .reopen,
      .limit(QueueLimits(concurrent: 1, perHost: 2, even: 3), excess: .finishes),
    ]
    #expect(
      operations.map(\.description) == [
        ".add(3, priority: 100, size: 2000, deadline: 5)", ".add(1)", ".start(2, preempting: .oldest)", ".start(1)",
        ".limit(QueueLimits(concurrent: 1, perHost: 2, even: 3))", ".setPriority(1, -1)", ".reopen",
        ".limit(QueueLimits(concurrent: 1, perHost: 2, even: 3), excess: .finishes)",
      ])
  }
}
