import DownpipeCore
import Foundation
import HangLimit
import Synchronization
import Testing

@_spi(Ledger) @testable import DownpipeTesting

/// Each property fails for a policy, limit or ledger that does not have it.
@Suite(.endsHangs)
struct QueuePropertyDefectTests {
  private static let byPriority = FakeSchedulingPolicy { Rank().descending($0.priority).ascending($0.arrival) }
  private static let one = QueueLimits(concurrent: 1, perHost: 1, even: 1)

  /// Properties of something that has a defect, and operations that show it.
  private struct Defect {
    var properties: QueueProperties
    var operations: [QueueOperation]

    init(_ operations: [QueueOperation], in properties: QueueProperties) {
      self.properties = properties
      self.operations = operations
    }

    init(_ operations: [QueueOperation], in defect: DefectiveLedger.Defect) {
      let properties = QueueProperties(limit: .seconds(15), ledger: { DefectiveLedger(defect) }) { byPriority }
      self.init(operations, in: properties)
    }
  }

  /// The engine does not notice that the gate closes.
  private static var withoutGate: QueueProperties {
    var properties = QueueProperties(limit: .seconds(15)) { byPriority }
    properties.subject.gate = { _ in FakeGate() }
    return properties
  }

  private static func defect(of property: QueueProperty) -> Defect? {
    switch property {
    case .limits:
      Defect(
        [.add(1), .add(4), .limit(one), .settle],
        in: QueueProperties(limit: .seconds(15), limits: { _ in FakeAdmissionPolicy() }) { byPriority })
    case .stops: Defect([.add(1), .add(2, priority: 100), .settle, .limit(one)], in: .losesPriorities)
    case .order: Defect([.suspend(true), .add(1), .add(2), .suspend(false), .settle], in: .reversesLeases)
    case .ranks:
      Defect(
        [.suspend(true), .add(1)],
        in: QueueProperties { FakeSchedulingPolicy { _ in Rank().ascending(Int64.random(in: 0...1_000_000)) } })
    case .bound:
      Defect(
        [.limit(one), .add(1), .settle, .add(2), .advance(seconds: 5), .add(4, priority: 1), .finish(1), .settle],
        in: QueueProperties(bound: { _ in .seconds(4) }) { byPriority })
    case .paused: Defect([.add(1), .settle, .pause(1), .add(2), .settle], in: .resumesPaused)
    case .gates: Defect([.add(1), .settle, .gate(isOpen: false), .settle], in: withoutGate)
    case .ending: Defect([.add(1), .settle, .finish(1), .settle], in: .restartsFinished)
    case .slots:
      Defect(
        [.add(1), .settle, .finish(1), .settle, .add(2), .settle],
        in: QueueProperties(limit: .seconds(15), limits: { _ in LeakyLimit() }) { byPriority })
    case .response: Defect([.add(1), .remove(1)], in: .refusesRemovals)
    // The engine prevents it with every ledger: see below.
    case .oneTransfer: nil
    }
  }

  @Test("Each property can fail", arguments: QueueProperty.allCases.filter { defect(of: $0) != nil })
  func defects(property: QueueProperty) async throws {
    let defect = try #require(Self.defect(of: property))
    let found = try #require(await failure { try await defect.properties.run(defect.operations) })
    #expect(found.property == property, "\(found)")
    // The same operations are harmless without the defect.
    try await QueueProperties { Self.byPriority }.run(defect.operations)
  }

  @Test("Two transfers of one download are found")
  func twoTransfers() async throws {
    let violations = ViolationLog()
    let source = QueueSource(limits: QueueLimits(concurrent: 9, perHost: 9, even: 9), violations: violations)
    let request = SourceRequest(url: QueueSource.request(1).url, id: "d1")
    let first = Task { try await source.open(request).body.forEachChunk { _ in } }
    while source.holding.isEmpty { await Task.yield() }
    try violations.check()
    let second = Task { try await source.open(request).body.forEachChunk { _ in } }
    var found: Violation?
    while found == nil {
      do { try violations.check() } catch { found = error as? Violation }
      await Task.yield()
    }
    #expect(found?.property == .oneTransfer)
    source.finishAll()
    _ = (await first.result, await second.result)
  }

  @Test("Limits stop the download added last, of those with equal ranks")
  func equalRanks() async throws {
    let properties = QueueProperties { FakeSchedulingPolicy { Rank().descending($0.priority) } }
    for _ in 0..<10 { try await properties.run([.add(1), .add(2), .add(3), .settle, .limit(Self.one)]) }
    try await properties.run(seeds: 0..<20)
  }

  @Test("An engine that stops downloads that may finish is found")
  func excess() async throws {
    let operations: [QueueOperation] = [
      .add(1), .add(2), .settle, .limit(Self.one, excess: .finishes), .settle, .finish(1), .settle,
    ]
    var properties = QueueProperties { Self.byPriority }
    try await properties.run(operations)
    properties.subject.excess = { _ in .stops }
    let stopping = properties
    let found = try #require(await failure { try await stopping.run(operations) })
    #expect(found.property == .stops && found.happened.contains("d2"), "\(found)")
  }

  @Test("Random sequences find limits that stop the wrong downloads")
  func wrongStops() async throws {
    let properties = QueueProperties(ledger: { DefectiveLedger(.losesPriorities) }) { Self.byPriority }
    let found = try #require(await failure { try await properties.run(seeds: 0..<500) })
    #expect(found.property == .stops, "\(found)")
    #expect(found.operations.count <= 6, "\(found)")
  }

  @Test("Limits that stop more downloads than they must are found")
  func needlessStops() async throws {
    let properties = QueueProperties(limits: { HastyLimit(limits: $0) }) { Self.byPriority }
    let operations: [QueueOperation] = [.add(1), .settle, .limit(QueueLimits(concurrent: 2, perHost: 2, even: 2))]
    let found = try #require(await failure { try await properties.run(operations) })
    #expect(found.property == .stops && found.happened.contains("d1"), "\(found)")
  }

  private func failure(of run: () async throws -> Void) async -> QueuePropertyFailure? {
    do {
      try await run()
      return nil
    } catch {
      if !(error is QueuePropertyFailure) { Issue.record("\(error)") }
      return error as? QueuePropertyFailure
    }
  }
}

/// A limit of one download, whose slot is never free again.
private struct LeakyLimit: AdmissionPolicy {
  var id: String { "limits" }
  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission { .admitted }
  func start() -> any AdmissionSession { Session() }

  private final class Session: AdmissionSession {
    private let starts = Mutex(0)

    func admit(_ candidate: Candidate, beside running: RunningDownloads, at now: Duration) -> Admission {
      starts.withLock { $0 } == 0 ? .admitted : .full("one has started")
    }
    func started(_ candidate: Candidate, at now: Duration) { starts.withLock { $0 += 1 } }
  }
}

/// Limits that refuse the first running download when they replace others.
private struct HastyLimit: AdmissionPolicy {
  let limits: QueueLimits
  var id: String { "limits" }
  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission { .admitted }
  func start() -> any AdmissionSession { Session(limits: limits) }

  private final class Session: AdmissionSession {
    private let limits: QueueLimits
    private let isFirst: Mutex<Bool>

    init(limits: QueueLimits) {
      self.limits = limits
      isFirst = Mutex(limits.concurrent < 3)
    }

    func admit(_ candidate: Candidate, beside running: RunningDownloads, at now: Duration) -> Admission {
      let isFirst = isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst
      }
      return !isFirst && limits.admit(candidate, beside: running) ? .admitted : .refused("full, or the first one")
    }
  }
}
