import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Calls in every order with jobs and ends of runs, without a task: what they lead to follows from the order of the calls.
@Suite(.endsHangs)
struct CallOrderTests {
  @Test("Commands take effect in the order of their calls, and every caller is answered once", arguments: 0..<8)
  func order(seed: UInt64) async throws {
    for number in 0..<150 {
      var random = SeededGenerator(seed: seed &* 1_000 &+ UInt64(number))
      let world = try await CallWorld()
      var steps: [CallWorld.Step] = []
      for _ in 0..<40 {
        guard let step = world.possible.randomElement(using: &random) else { break }
        steps.append(step)
        await world.take(step)
      }
      if let flaw = try await world.end() {
        Issue.record("seed \(seed), order \(number), \(steps.count) steps: \(flaw)")
      }
    }
  }

  @Test("A command that does not wait for earlier ones is found")
  func lateCommands() async throws {
    var flaws = 0
    for number in 0..<300 {
      var random = SeededGenerator(seed: UInt64(number))
      let world = try await CallWorld(sabotage: .lateCommands)
      for _ in 0..<40 {
        guard let step = world.possible.randomElement(using: &random) else { break }
        await world.take(step)
      }
      if try await world.end() != nil { flaws += 1 }
    }
    #expect(flaws > 0)
  }

  @Test("A step's call that concerns no download waits for no command: its own download may be waited for")
  func callsOfSteps() async throws {
    let world = try await CallWorld()
    await world.goOn()
    try world.process("a")
    world.move("a")
    for step in [CallWorld.Step.call(.pauseAll, "a"), .call(.resumeAll, "a"), .call(.look, "a")] {
      await world.take(step)
      await world.goOn()
    }
    #expect(world.answered == ["look a"])
    world.finish("a")
    await world.goOn()
    #expect(world.answered == ["look a", "move a", "pauseAll a", "resumeAll a"])
  }

  @Test("A caller that is cancelled while it waits for a run is answered, and the run is stopped all the same")
  func cancelled() async throws {
    let world = try await CallWorld()
    for step in [CallWorld.Step.job, .conclude, .call(.pause, "a"), .cancelLast] { await world.take(step) }
    while world.possible.contains(.job) || world.possible.contains(.conclude) {
      await world.take(world.possible.contains(.conclude) ? .conclude : .job)
    }
    #expect(try await world.end() == nil)
  }
}

/// A small world around an ``EngineState``: two downloads in a real ledger, callers, and runs that end when they are stopped.
private final class CallWorld {
  enum Command: String, CaseIterable { case pause, resume, restart, cancel, remove, change, pauseAll, resumeAll, look }

  enum Step: Hashable {
    case call(Command, DownloadID)
    /// The caller of the last command is cancelled.
    case cancelLast
    /// The next job is done; then what it has found is taken.
    case job, conclude
    /// A run that was stopped ends.
    case end(DownloadID)
  }

  /// What is known of a download from the order of the calls.
  private enum Knowledge: String { case active, paused, cancelled, gone }

  private final class Caller: Sendable {
    let answers: Watched<[String]>
    let command: String
    /// What it gets; `nil` if that is not known.
    let expected: String?

    init(_ command: String, expected: String?) {
      (self.command, self.expected, answers) = (command, expected, Watched([]))
    }

    init(_ other: Caller, expected: String?) {
      (command, self.expected, answers) = (other.command, expected, other.answers)
    }
  }

  private var state: EngineState
  private let setup: StateModel.Setup
  private var isTurnDue = false
  private var isInTurn = false
  private var job: Job?
  private var conclusion: Job.Conclusion?
  private var working: [Run] = []
  private var callers: [Caller] = []
  private var lastCall = 0
  private var known: [DownloadID: Knowledge] = ["a": .active, "b": .active]
  private let instant: EngineState.Instant

  init(sabotage: Sabotage? = nil) async throws {
    setup = try await StateModel.Setup(limit: 2, sabotage: sabotage)
    let date = setup.records[0].createdAt
    instant = .init(now: .zero, date: date)
    let additions = setup.records.map { LedgerAddition(request: $0.request, arrival: $0.arrival) }
    _ = try await setup.context.store.add(additions, at: date)
    state = EngineState(setup.pipeline, sessions: [setup.source], setup.context)
    decide { $0.receive(.reported(gate: 1, .open), at: $1) }
    look(needsTurn: true)
  }

  // MARK: Steps

  var possible: [Step] {
    var steps: [Step] = []
    if conclusion == nil, isTurnDue { steps.append(.job) }
    if conclusion != nil { steps.append(.conclude) }
    for run in working where run.stopReason != nil { steps.append(.end(run.id)) }
    if callers.count < 8 {
      for id in [DownloadID("a"), "b"] { steps += Command.allCases.map { .call($0, id) } }
    }
    return steps
  }

  func take(_ step: Step) async {
    switch step {
    case .call(let command, let id): call(command, id)
    case .cancelLast:
      if let last = callers.popLast() { callers.append(Caller(last, expected: "cancelled")) }
      decide { [lastCall] in $0.receive(.cancelledCall(lastCall), at: $1) }
    case .job:
      if job == nil { job = decide { $0.nextJob(at: $1) } }
      conclusion = await job?.perform(setup.context)
      if job == nil { endTurn() }
    case .conclude:
      guard let conclude = conclusion else { break }
      (conclusion, job) = (nil, decide { conclude(&$0, $1) })
      if job == nil { job = decide { $0.nextJob(at: $1) } }
      if job == nil { endTurn() }
    case .end(let id):
      guard let index = working.firstIndex(where: { $0.id == id && $0.stopReason != nil }) else { break }
      let run = working.remove(at: index)
      guard let reason = run.stopReason else { break }
      decide { $0.receive(.ended(run, .stopped(reason)), at: $1) }
      return look(needsTurn: true)
    }
    look()
  }

  /// Lets everything go on that can.
  /// - Returns: What is not as the order of the calls says.
  func end() async throws -> String? {
    for _ in 0..<1_000 {
      guard let step = possible.first(where: { if case .call = $0 { false } else { true } }) else { break }
      await take(step)
    }
    for caller in callers {
      guard caller.answers.value.count == 1 else {
        return "\(calls): \(caller.command) has \(caller.answers.value.count) answers"
      }
      if let expected = caller.expected, caller.answers.value != [expected] {
        return "\(calls): \(caller.command) has got \(caller.answers.value[0]), not \(expected)"
      }
    }
    if state.commands.count > 0 { return "\(state.commands.count) commands are not over" }
    for (id, knowledge) in known {
      let phase = try await setup.context.store.record(id)?.phase
      let isRight =
        switch knowledge {
        case .gone: phase == nil
        case .active: phase == .transferring && working.contains { $0.id == id && $0.stopReason == nil }
        case .paused: phase == .paused
        case .cancelled: phase == .cancelled
        }
      if !isRight { return "“\(id)” should be \(knowledge), and is \(phase.map { "\($0)" } ?? "gone")" }
    }
    return nil
  }

  // MARK: Steps of a download

  /// Lets everything go on that can.
  func goOn() async {
    for _ in 0..<1_000 {
      guard let step = possible.first(where: { if case .call = $0 { false } else { true } }) else { return }
      await take(step)
    }
  }

  /// The commands that were answered.
  var answered: Set<String> { Set(callers.filter { !$0.answers.value.isEmpty }.map(\.command)) }

  /// The steps of a download have begun.
  func process(_ id: DownloadID) throws {
    let run = try #require(working.first { $0.id == id })
    run.update { $0.apply(.bytesComplete) }
  }

  /// Changes the destination of a download.
  func move(_ id: DownloadID) {
    begin("move \(id)", expected: nil) { .moving(id, $0, $1) }
    look()
  }

  /// The work of a run ends with a file.
  func finish(_ id: DownloadID) {
    guard let index = working.firstIndex(where: { $0.id == id }) else { return }
    let run = working.remove(at: index)
    let artifact = Artifact(kind: .file, location: .memory([1]), name: id.rawValue)
    let outcome = run.stopReason.map { Outcome.stopped($0) } ?? .published(artifact)
    decide { $0.receive(.ended(run, outcome), at: $1) }
    look(needsTurn: true)
  }

  // MARK: Calls

  private var calls: [String] = []

  private func call(_ command: Command, _ id: DownloadID) {
    calls.append("\(command) \(id)")
    switch command {
    case .pause: one(id, [.active: .paused]) { .applying(.pause, to: id, $0, $1) }
    // One that waits stops waiting for its time.
    case .resume: one(id, [.paused: .active], isCertain: known[id] != .active) { .applying(.resume, to: id, $0, $1) }
    case .restart:
      // A download that waits for its first attempt has nothing to restart.
      one(id, [.active: .active, .paused: .active, .cancelled: .active], isCertain: false) {
        .applying(.restart, to: id, $0, $1)
      }
    case .cancel: one(id, [.active: .cancelled, .paused: .cancelled]) { .applying(.cancel, to: id, $0, $1) }
    case .remove:
      one(id, [.active: .gone, .paused: .gone, .cancelled: .gone], refuses: false) { .removing(id, $0, $1) }
    case .look: begin(calls.last ?? "", expected: "seen") { .looking($0, $1) }
    case .change: one(id, [:], isCertain: false) { .changing(id, $0, $1) }
    case .pauseAll: many([.active: .paused]) { .applying(.pauseAll, $0, $1) }
    case .resumeAll: many([.paused: .active]) { .applying(.resume, $0, $1) }
    }
  }

  private func one(
    _ id: DownloadID, _ changes: [Knowledge: Knowledge], isCertain: Bool = true, refuses: Bool = true,
    _ make: (Int, @escaping @Sendable (Result<String, any Error>) -> Void) -> Call
  ) {
    let before = known[id] ?? .gone
    let expected = before == .gone && refuses ? "refused" : isCertain ? "\(changes[before] != nil)" : nil
    if let after = changes[before] { known[id] = after }
    begin(calls.last ?? "", expected: expected, make)
  }

  private func many(
    _ changes: [Knowledge: Knowledge],
    _ make: (Int, @escaping @Sendable (Result<String, any Error>) -> Void) -> Call
  ) {
    for id in [DownloadID("a"), "b"] { if let after = known[id].flatMap({ changes[$0] }) { known[id] = after } }
    begin(calls.last ?? "", expected: nil, make)
  }

  private func begin(
    _ name: String, expected: String?, _ make: (Int, @escaping @Sendable (Result<String, any Error>) -> Void) -> Call
  ) {
    let caller = Caller(name, expected: expected)
    callers.append(caller)
    lastCall += 1
    let call = make(lastCall) { result in
      let answer =
        switch result {
        case .success(let text): text
        case .failure(is CancellationError): "cancelled"
        case .failure: "refused"
        }
      caller.answers.update { $0.append(answer) }
    }
    decide { $0.receive(.called(call), at: $1) }
  }

  // MARK: The shell

  private func decide<Decision>(_ decision: (inout EngineState, EngineState.Instant) -> Decision) -> Decision {
    let result = decision(&state, instant)
    for effect in state.takeEffects() {
      switch effect {
      case .start(let run, _): working.append(run)
      case .end(let run, _): run.markEnded()
      case .answer(let answers): for answer in answers { answer() }
      case .takeTurn: isTurnDue = true
      default: break
      }
    }
    return result
  }

  private func look(needsTurn: Bool = false) {
    decide { $0.receive(.news(.init(), needsTurn: needsTurn), at: $1) }
  }

  private func endTurn() {
    isTurnDue = false
    decide { $0.receive(.turnEnded, at: $1) }
  }
}

extension Call {
  fileprivate typealias Answer = @Sendable (Result<String, any Error>) -> Void

  fileprivate static func applying(
    _ command: LifecycleCommand, to id: DownloadID, _ number: Int, _ answer: @escaping Answer
  )
    -> Call
  {
    Call(number: number, ids: [id], stopReason: command.stopReason, isContinuation: false) { stopped in
      { state, _ in state.apply(command, to: id, after: stopped) }
    } _: {
      answer($0.map { "\($0)" })
    }
  }

  fileprivate static func applying(_ command: LifecycleCommand, _ number: Int, _ answer: @escaping Answer) -> Call {
    Call(number: number, ids: nil, isContinuation: false) { _ in
      { state, _ in state.apply(command, to: .matching(.all), after: BulkResult()) }
    } _: {
      answer($0.map { "\($0.count)" })
    }
  }

  /// A call that concerns no download.
  fileprivate static func looking(_ number: Int, _ answer: @escaping Answer) -> Call {
    Call(number: number, ids: [], isContinuation: false) { _ in
      { _, _ in .over("seen") }
    } _: {
      answer($0)
    }
  }

  fileprivate static func moving(_ id: DownloadID, _ number: Int, _ answer: @escaping Answer) -> Call {
    Call(number: number, ids: [id], isContinuation: false) { _ in
      { state, _ in state.change(id) { $0.destination.setName("moved") } }
    } _: {
      answer($0.map { _ in "moved" })
    }
  }

  fileprivate static func removing(_ id: DownloadID, _ number: Int, _ answer: @escaping Answer) -> Call {
    Call(number: number, ids: [id], stopReason: .remove, isContinuation: false) { stopped in
      { state, _ in state.remove(id, deletingFile: false, after: stopped.map { [$0] } ?? []) }
    } _: {
      answer($0.map { "\($0.hasRemoved)" })
    }
  }

  fileprivate static func changing(_ id: DownloadID, _ number: Int, _ answer: @escaping Answer) -> Call {
    Call(number: number, ids: [id], isContinuation: false) { _ in
      { state, instant in
        try state.rankOnce(at: instant) { state, _ in state.change(id) { $0.metadata["call"] = "\(number)" } }
      }
    } _: {
      answer($0.map { _ in "changed" })
    }
  }
}
