import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// The decisions of the engine, without a task: events in every order.
@Suite(.endsHangs)
struct EngineStateTests {
  @Test(
    "Every order of up to six events (seven in the long form) for two downloads keeps the invariants",
    arguments: [1, 2])
  func everyOrder(limit: Int) async throws {
    let model = try await StateModel.Setup(limit: limit)
    let length = LongForm.count(6, long: 7)
    var sequences = 0
    func visit(_ steps: [StateModel.Step]) throws {
      let world = try StateModel(model)
      for step in steps { world.take(step) }
      if let flaw = world.flaw { Issue.record("\(steps): \(flaw)") }
      sequences += 1
      guard steps.count < length else { return }
      for step in world.possible { try visit(steps + [step]) }
    }
    try visit([])
    #expect(sequences > LongForm.count(4_000, long: 20_000), "only \(sequences)")
  }

  #if SABOTAGE
    @Test("A gate that stops nothing is found")
    func aDefectIsFound() async throws {
      let world = try StateModel(try await StateModel.Setup(limit: 2) { $0.sabotage = .runsPastGates })
      for step in [StateModel.Step.begin, .answer] { world.take(step) }
      #expect(world.flaw == nil)
      world.take(.close)
      #expect(world.flaw != nil)
    }
  #endif

  @Test("A downloader that stops tells no reasons: each turn would call for the next")
  func reasonsOfAStoppingDownloader() async throws {
    let setup = try await StateModel.Setup(limit: 1)
    let session = try await setup.source.start(in: setup.pipeline.sourceContext)
    var state = EngineState(setup.pipeline, sessions: [session], setup.context)
    #expect(!state.mayTellReasons)
    state.reasons.mayHaveChanged = true
    #expect(state.mayTellReasons)
    state.mode.restLedger()
    #expect(!state.mayTellReasons, "it cannot be asked")
    state.mode.ledger = .used
    state.receive(.stop, at: .init(now: .zero, date: Date(timeIntervalSince1970: 0)))
    #expect(!state.mayTellReasons)
  }

  @Test("Long random orders keep the invariants, and everything ends", arguments: 0..<8)
  func randomOrders(seed: UInt64) async throws {
    let model = try await StateModel.Setup(limit: 1 + Int(seed % 2))
    for number in 0..<100 {
      var random = SeededGenerator(seed: seed &* 1_000 &+ UInt64(number))
      let world = try StateModel(model)
      var steps: [StateModel.Step] = []
      for _ in 0..<60 {
        guard let step = world.possible.randomElement(using: &random) else { break }
        steps.append(step)
        world.take(step)
        if let flaw = world.flaw {
          Issue.record("seed \(seed), order \(number): \(steps): \(flaw)")
          break
        }
      }
      if let flaw = world.end() { Issue.record("seed \(seed), order \(number): \(steps), end: \(flaw)") }
    }
  }
}

/// A small world around an ``EngineState``: a ledger with two downloads, a gate and a clock.
final class StateModel {
  enum Step: String, CaseIterable {
    /// The turn asks for an exchange; the ledger answers, fails, or answers that another owner has the downloads.
    case begin, answer, fail, lose, refuse
    /// The work of a run ends: as it was told to stop, or else with a file; or with a failure, after which it waits.
    case endA, endB, failA
    case close, open, suspend, unsuspend
    /// The first timer fires.
    case timer
    case stop
  }

  struct Setup {
    let context: EngineContext
    let pipeline: Pipeline
    let source: FakeSource
    let records: [DownloadRecord]
    let limit: Int

    init(limit: Int, changingOptions change: (inout DownloaderOptions) -> Void = { _ in }) async throws {
      self.limit = limit
      let fixture = try await RunFixture()
      let (source, storage, gate) = (FakeSource(everyURL: .init([1])), FakeStorage(), FakeGate(name: "gate"))
      self.source = source
      pipeline = Pipeline {
        source
        gate
        FakeAdmissionPolicy(maximumConcurrent: limit) { $1.total < limit ? .admitted : .full("\(limit) run") }
        storage
      }
      var options = DownloaderOptions(time: fixture.time)
      change(&options)
      context = EngineContext(options: options, store: fixture.store, pipeline: pipeline)
      records = [try fixture.record("a", rank: 1), try fixture.record("b", rank: 2)]
    }
  }

  private var state: EngineState
  private var ledger: [DownloadID: DownloadRecord]
  private var clock = Duration.zero
  private let start: Date

  private var needsTurn = false
  private var isTurnDue = false
  private var isInTurn = false
  private var exchange: Exchange?
  /// The last exchange that has taken effect.
  private var last: (number: Int64, result: LedgerExchange)?
  private var timers: [(timer: EngineState.Timer, due: Duration)] = []
  /// The runs that work, and those whose outcome has not been told.
  private var working: [Run] = []
  private var untold: [ObjectIdentifier: DownloadID] = [:]
  private var isGateClosed = false
  private let limit: Int
  private(set) var flaw: String?

  init(_ setup: Setup) throws {
    limit = setup.limit
    state = EngineState(setup.pipeline, sessions: [setup.source], setup.context)
    ledger = Dictionary(uniqueKeysWithValues: setup.records.map { ($0.id, $0) })
    start = setup.records[0].createdAt
    // Errands are not carried out here.
    state.due.subtract([.reclaim, .deletions])
    decide { $0.receive(.reported(gate: 1, .open), at: $1) }
    look(needsTurn: true)
  }

  // MARK: Steps

  /// The steps that mean something now.
  var possible: [Step] { Step.allCases.filter(isPossible) }

  private func isPossible(_ step: Step) -> Bool {
    switch step {
    case .begin: isTurnDue && exchange == nil
    case .answer, .fail, .lose: exchange != nil
    case .refuse: exchange?.unsaved.isEmpty == false
    case .endA: run("a") != nil
    case .endB: run("b") != nil
    case .failA: run("a") != nil && run("a")?.stopReason == nil
    case .close: !isGateClosed
    case .open: isGateClosed
    case .suspend: !state.mode.isSuspended
    case .unsuspend: state.mode.isSuspended
    case .timer: !timers.isEmpty
    case .stop: !state.mode.isStopping
    }
  }

  func take(_ step: Step) {
    switch step {
    case .begin: beginTurn()
    case .answer: answer { .success(self.exchanged($0)) }
    case .fail: answer { _ in .failure(DownloadError(.ledger, "no")) }
    case .lose:
      answer {
        _ = self.exchanged($0)
        return .failure(DownloadError(.ledger, "the answer was lost"))
      }
    case .refuse: answer { .success(self.exchanged($0, isRefused: true)) }
    case .endA: end("a")
    case .endB: end("b")
    case .failA: end("a", .failed(DownloadError(.network, "no"), .resume(after: .seconds(5))))
    case .close, .open:
      isGateClosed = step == .close
      decide { [isGateClosed] in $0.receive(.reported(gate: 1, isGateClosed ? .closed("no") : .open), at: $1) }
    case .suspend:
      decide { $0.receive(.suspended, at: $1) }
    case .unsuspend:
      decide { $0.receive(.suspensionEnds, at: $1) }
      decide { $0.receive(.suspensionEnded(call: $0.mode.suspensions, isFirst: false), at: $1) }
    case .timer:
      guard let first = timers.indices.min(by: { timers[$0].due < timers[$1].due }) else { break }
      let (timer, due) = timers.remove(at: first)
      clock = max(clock, due)
      decide { $0.receive(.fired(timer, due), at: $1) }
    case .stop: decide { $0.receive(.stop, at: $1) }
    }
    look(needsTurn: needsTurn || ![.begin, .answer, .fail, .lose, .refuse].contains(step))
    needsTurn = false
    check()
  }

  /// Lets everything go on that can, with an open gate.
  /// - Returns: What has not ended.
  func end() -> String? {
    if isPossible(.open) { take(.open) }
    if isPossible(.unsuspend) { take(.unsuspend) }
    for _ in 0..<200 {
      if let flaw { return flaw }
      guard let step = [Step.begin, .answer, .endA, .endB, .timer].first(where: isPossible) else { break }
      take(step)
    }
    if !state.outbox.isEmpty { return "an outcome is not saved" }
    if state.mode.isStopping { return state.isOver ? flaw : "the loop does not end" }
    let rest = ledger.values.filter { $0.phase != .finished }
    return rest.isEmpty ? flaw : "not finished: \(rest.map { "\($0.id) \($0.phase)" })"
  }

  // MARK: The shell

  private var instant: EngineState.Instant { .init(now: clock, date: start + (clock / .seconds(1))) }

  private func run(_ id: DownloadID) -> Run? { working.first { $0.id == id } }

  @discardableResult
  private func decide<Decision>(_ decision: (inout EngineState, EngineState.Instant) -> Decision) -> Decision {
    let result = decision(&state, instant)
    for action in state.takeActions() { carryOut(action) }
    return result
  }

  private func look(needsTurn: Bool) {
    decide { $0.receive(.news(.init(), needsTurn: needsTurn), at: $1) }
  }

  private func carryOut(_ action: EngineState.Action) {
    switch action {
    case .start(let run, let earlier):
      if run.isIn(working) { flaw = "“\(run.id)” is started twice" }
      if let other = self.run(run.id), other !== earlier { flaw = "“\(run.id)” has two runs" }
      working.append(run)
    case .end(let run, _):
      if untold.removeValue(forKey: ObjectIdentifier(run)) == nil { flaw = "the end of “\(run.id)” is told twice" }
    case .cleanUp(let run):
      needsTurn = true
      decide { $0.receive(.cleanedUp(run), at: $1) }
    case .takeTurn:
      if isTurnDue || isInTurn { flaw = "two turns at once" }
      isTurnDue = true
    case .sleep(let due, .due): timers.append((.due, due))
    case .sleep(let due, .admission): timers.append((.admission, due))
    case .announceUnsaved, .watch, .sleep, .askRoom, .lookForOthers, .tickRuns, .renewLeases,
      .maintain, .perform, .publish, .announcePresentState, .answer, .leaseSharedRates, .stop:
      break
    }
  }

  private func beginTurn() {
    isInTurn = true
    decide { state, _ in state.endCleanedUp() }
    exchange = decide { $0.beginExchange(at: $1) }
    if exchange == nil { endTurn() }
  }

  private func answer(_ result: (Exchange) -> Result<LedgerExchange, any Error>) {
    guard let exchange else { return }
    self.exchange = nil
    let result = result(exchange)
    var made = exchange
    made.first = made.first ?? made.request
    let answer = Exchange.Answer(exchange: made, result: result, mustLease: exchange.isRepeated)
    decide { $0.receive(.exchanged(answer, changed: []), at: $1) }
    setTimer()
    beginTurn()
  }

  private func setTimer() {
    guard !state.mode.isStopping else { return }
    if state.mode.ledger != .used { return decide { $0.armRest(at: $1) } }
    guard state.due.remove(.timer) != nil else { return }
    let after = state.waits.lastLook ?? instant.date
    let due = ledger.values.compactMap { $0.phase == .waiting ? $0.notBefore : nil }.filter { $0 > after }.min()
    state.waits.lastLook = nil
    decide { $0.arm(due, at: $1) }
  }

  private func endTurn() {
    setTimer()
    (isTurnDue, isInTurn) = (false, false)
    decide { $0.receive(.turnEnded, at: $1) }
  }

  private func end(_ id: DownloadID, _ outcome: Outcome? = nil) {
    guard let run = run(id) else { return }
    working.removeAll { $0 === run }
    untold[ObjectIdentifier(run)] = id
    let artifact = Artifact(kind: .file, location: .memory([1]), name: id.rawValue)
    let stopped = run.stopReason.map { $0 == .lostLease ? Outcome.notOwned : .stopped($0) }
    decide { $0.receive(.ended(run, stopped ?? outcome ?? .published(artifact)), at: $1) }
  }

  // MARK: The ledger

  private func exchanged(_ exchange: Exchange, isRefused: Bool = false) -> LedgerExchange {
    if let last, last.number == exchange.number {
      var again = last.result
      again.leased = again.leased.compactMap { ledger[$0.id] }.filter(\.phase.isActive)
      return again
    }
    var result = LedgerExchange()
    defer { last = (exchange.number, result) }
    for unsaved in exchange.unsaved {
      result.saved.append(!isRefused)
      // Another owner has taken it, and let it go.
      if isRefused {
        ledger[unsaved.run.id]?.apply(.leaseLost)
      } else {
        ledger[unsaved.run.id] = unsaved.run.recordToSave
      }
    }
    guard let request = exchange.request else { return result }
    for id in [DownloadID("a"), "b"] {
      guard var record = ledger[id], record.phase == .waiting, record.notBefore.map({ $0 <= request.now }) ?? true
      else { continue }
      let selection = request.select(record.candidate)
      if selection == .stop { break }
      guard selection == .take else { continue }
      record.apply(.leased)
      record.notBefore = nil
      ledger[id] = record
      result.leased.append(record)
    }
    return result
  }

  // MARK: Invariants

  private func check() {
    guard flaw == nil else { return }
    let holders = working.count
    if state.slots.counts.total != holders { flaw = "\(state.slots.counts.total) slots for \(holders) runs" }
    let going = working.filter { $0.stopReason == nil }
    if isGateClosed, !going.isEmpty { flaw = "“\(going[0].id)” runs although the gate is closed" }
    if state.mode.isSuspended, !going.isEmpty { flaw = "“\(going[0].id)” runs although all are suspended" }
    if state.mode.isStopping, !going.isEmpty { flaw = "“\(going[0].id)” runs although the downloader stops" }
    for run in going where ledger[run.id]?.phase.isActive != true {
      flaw = "“\(run.id)” runs, and the ledger says \(ledger[run.id]?.phase as Any)"
    }
    let held = ledger.values.count { $0.phase.isActive }
    if held > limit { flaw = "the ledger holds \(held) downloads, and \(limit) may run" }
    for id in untold.values where state.slots.runs[id] == nil { flaw = "the outcome of “\(id)” is lost" }
    // When nothing is on its way, nothing waits without a reason.
    guard !isTurnDue, exchange == nil, !state.mode.isStopping else { return }
    if !state.outbox.isEmpty, timers.isEmpty { flaw = "an outcome waits, and nothing will save it" }
    for record in ledger.values where record.phase == .waiting && state.slots.runs[record.id] == nil {
      let isDelayed = record.notBefore.map { $0 > instant.date } ?? false
      if isDelayed || state.mode.ledger != .used {
        if timers.isEmpty { flaw = "“\(record.id)” waits for a time without a timer" }
      } else if !isGateClosed, !state.mode.isSuspended, state.reason(for: record.candidate, at: clock) == .turn {
        flaw = "“\(record.id)” could start, and does not"
      }
    }
  }
}

extension Run {
  fileprivate func isIn(_ runs: [Run]) -> Bool { runs.contains { $0 === self } }
}
