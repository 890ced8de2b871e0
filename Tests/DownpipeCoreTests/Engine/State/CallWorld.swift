import DownpipeTesting
import Foundation
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// A small world around an ``EngineState``: two downloads in a real ledger, callers, and runs that end when they are stopped.
final class CallWorld {
  enum Step: Hashable {
    case call(CallHistory.Command, DownloadID)
    /// A caller is cancelled.
    case cancel(Int)
    /// The next job is done; then what it has found is taken.
    case job, conclude
    /// The first errand ends.
    case errand
    /// A run that was stopped ends.
    case end(DownloadID)
  }

  private final class Caller: Sendable {
    let answers = Watched<[String]>([])
  }

  private var state: EngineState
  private let setup: StateModel.Setup
  private var isTurnDue = false
  private var job: Job?
  private var conclusion: Job.Conclusion?
  private var errands: [Errand] = []
  private var working: [Run] = []
  private var callers: [Caller] = []
  private var history = CallHistory()
  private let isAwaited: Bool
  private let instant: EngineState.Instant

  /// - Parameter isAwaited: Whether a caller waits until the downloader is idle: then there are more jobs.
  init(isAwaited: Bool = false, changingOptions change: (inout DownloaderOptions) -> Void = { _ in }) async throws {
    self.isAwaited = isAwaited
    setup = try await StateModel.Setup(limit: 2, changingOptions: change)
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
    if !errands.isEmpty { steps.append(.errand) }
    for run in working where run.stopReason != nil { steps.append(.end(run.id)) }
    if callers.count < 8 {
      for id in CallHistory.ids { steps += CallHistory.Command.allCases.map { .call($0, id) } }
    }
    for (index, caller) in callers.enumerated() where caller.answers.value.isEmpty { steps.append(.cancel(index)) }
    return steps
  }

  func take(_ step: Step) async {
    switch step {
    case .call(let command, let id): call(command, id)
    case .cancel(let index): decide { $0.receive(.cancelledCall(index + 1), at: $1) }
    case .job:
      if job == nil { job = decide { $0.nextJob(at: $1) } }
      conclusion = await job?.perform(setup.context)
      if job == nil { endTurn() }
    case .conclude:
      guard let conclude = conclusion else { break }
      (conclusion, job) = (nil, decide { conclude(&$0, $1) })
      if job == nil { job = decide { $0.nextJob(at: $1) } }
      if job == nil { endTurn() }
    case .errand:
      guard !errands.isEmpty else { break }
      let errand = errands.removeFirst()
      var changes = Changes()
      let decision = await errand.perform(setup.context, &changes)
      decide { [changes] in $0.receive(.errandEnded(errand, decision, changes), at: $1) }
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
  func goOn(butNotEnds: Bool = false, atMost count: Int = 1_000) async {
    for _ in 0..<count {
      let step = possible.first {
        switch $0 {
        case .call, .cancel: false
        case .job, .conclude, .errand: true
        case .end: !butNotEnds
        }
      }
      guard let step else { return }
      await take(step)
    }
  }

  /// Lets everything go on that can.
  /// - Returns: What is not as the order of the calls says.
  func end() async throws -> String? {
    await goOn()
    for (index, answers) in answers.enumerated() where answers.count != 1 {
      return "\(history.names[index]) has \(answers.count) answers"
    }
    if state.commands.count > 0 { return "\(state.commands.count) commands are not over" }
    let (flaw, possible) = history.judge(answers.map { $0[0] })
    if let flaw { return flaw }
    for id in CallHistory.ids {
      let record = try await setup.context.store.record(id)
      let isRight = (possible[id] ?? []).contains { known in
        let isInPhase =
          switch known.phase {
          case .gone: record == nil
          case .active: record?.phase == .transferring && working.contains { $0.id == id && $0.stopReason == nil }
          case .paused: record?.phase == .paused
          case .cancelled: record?.phase == .cancelled
          }
        return isInPhase && (known.addition.map { record?.request.tags == ["\($0)"] } ?? true)
      }
      if !isRight {
        let found = record.map { "\($0.phase) \($0.request.tags)" } ?? "gone"
        return "“\(id)” is \(found) after \(history.names) with \(answers)"
      }
    }
    return nil
  }

  // MARK: Steps of a download

  /// The commands that were answered.
  var answered: Set<String> {
    Set(zip(history.names, callers).filter { !$0.1.answers.value.isEmpty }.map(\.0))
  }
  /// What the callers have got.
  var answers: [[String]] { callers.map(\.answers.value) }

  /// The steps of a download have begun.
  func process(_ id: DownloadID) throws {
    let run = try #require(working.first { $0.id == id })
    run.update { $0.apply(.bytesComplete) }
  }

  /// Changes the destination of a download.
  func move(_ id: DownloadID) {
    history.names.append("move \(id)")
    begin { .moving(id, $0, $1) }
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

  private func call(_ command: CallHistory.Command, _ id: DownloadID) {
    history.note(command, id)
    switch command {
    case .pause: begin { .applying(.pause, to: id, $0, $1) }
    case .resume: begin { .applying(.resume, to: id, $0, $1) }
    case .restart: begin { .applying(.restart, to: id, $0, $1) }
    case .cancel: begin { .applying(.cancel, to: id, $0, $1) }
    case .remove: begin { .removing(id, $0, $1) }
    case .look: begin { .looking($0, $1) }
    case .change: begin { .changing(id, $0, $1) }
    case .pauseAll: begin { .applying(.pauseAll, $0, $1) }
    case .resumeAll: begin { .applying(.resume, $0, $1) }
    case .add: add([id])
    case .addBoth: add(CallHistory.ids)
    }
  }

  private func begin(_ make: (Int, @escaping Call.Answer) -> Call) {
    let call = make(callers.count + 1, answer())
    decide { $0.receive(.called(call), at: $1) }
  }

  private func add(_ ids: [DownloadID]) {
    let number = callers.count + 1
    let additions = setup.records.filter { ids.contains($0.id) }.map { record in
      var request = record.request
      request.tags = ["\(number)"]
      return LedgerAddition(request: request, arrival: Int64(number), ifKnown: .update)
    }
    let answer = answer()
    let addition = Addition(number: number, additions: additions, isAfterCommands: true, check: nil) {
      answer($0.map { _ in "added" })
    }
    decide { $0.receive(.addition(addition), at: $1) }
  }

  private func answer() -> Call.Answer {
    let caller = Caller()
    callers.append(caller)
    return { result in
      let answer =
        switch result {
        case .success(let text): text
        case .failure(is CancellationError): "cancelled"
        case .failure: "refused"
        }
      caller.answers.update { $0.append(answer) }
    }
  }

  // MARK: The shell

  private func decide<Decision>(_ decision: (inout EngineState, EngineState.Instant) -> Decision) -> Decision {
    let result = decision(&state, instant)
    for action in state.takeActions() {
      switch action {
      case .start(let run, _): working.append(run)
      case .perform(let errand): errands.append(errand)
      case .end(let run, _): run.markEnded()
      case .answer(let answers): for answer in answers { answer() }
      case .takeTurn: isTurnDue = true
      default: break
      }
    }
    return result
  }

  private func look(needsTurn: Bool = false) {
    if isAwaited, state.idleWaiters.isEmpty { state.idleWaiters.insert(Completion()) }
    decide { $0.receive(.news(.init(), needsTurn: needsTurn), at: $1) }
  }

  private func endTurn() {
    isTurnDue = false
    decide { $0.receive(.turnEnded, at: $1) }
  }
}

/// What follows from the order of the calls alone.
struct CallHistory {
  enum Command: String, CaseIterable {
    case pause, resume, restart, cancel, remove, change, pauseAll, resumeAll, look, add, addBoth
  }

  enum Phase { case active, paused, cancelled, gone }

  /// What is known of a download.
  struct Known: Hashable {
    var phase = Phase.active
    /// The number of the addition whose request it has.
    var addition: Int?
  }

  static let ids: [DownloadID] = ["a", "b"]

  private var calls: [(command: Command, id: DownloadID)] = []
  var names: [String] = []

  mutating func note(_ command: Command, _ id: DownloadID) {
    calls.append((command, id))
    names.append("\(command) \(id)")
  }

  /// Compares answers with the order of the calls. A command whose caller was cancelled takes effect at its place or not at
  /// all.
  func judge(_ answers: [String]) -> (flaw: String?, possible: [DownloadID: Set<Known>]) {
    var possible = [DownloadID: Set<Known>]()
    for id in Self.ids { possible[id] = [Known()] }
    for (index, (command, id)) in calls.enumerated() {
      let isOptional = answers[index] == "cancelled"
      for other in Self.ids where other == id || [.pauseAll, .resumeAll, .addBoth].contains(command) {
        let before = possible[other] ?? []
        let outcomes = before.map { ($0, effect(of: command, number: index + 1, on: $0)) }
        let fitting = outcomes.filter { isOptional || $0.1.answers.map { $0.contains(answers[index]) } ?? true }
        guard !fitting.isEmpty else { return ("\(names[index]) has got \(answers[index]): \(names), \(answers)", [:]) }
        possible[other] = Set(fitting.map(\.1.known) + (isOptional ? fitting.map(\.0) : []))
      }
    }
    return (nil, possible)
  }

  /// - Returns: The answers are `nil` if any may be given.
  private func effect(
    of command: Command, number: Int, on before: Known
  ) -> (known: Known, answers: Set<String>?) {
    var after = before
    func become(_ phase: Phase, from phases: Set<Phase>) -> Bool {
      guard phases.contains(before.phase) else { return false }
      after.phase = phase
      return true
    }
    var answers: Set<String>?
    switch command {
    case .pause: answers = ["\(become(.paused, from: [.active]))"]
    // One that is active may wait for its time, and stops waiting.
    case .resume:
      let isResumed = become(.active, from: [.paused])
      answers = before.phase == .active ? nil : ["\(isResumed)"]
    // A download that waits for its first attempt has nothing to restart.
    case .restart: _ = become(.active, from: [.paused, .cancelled])
    case .cancel: answers = ["\(become(.cancelled, from: [.active, .paused]))"]
    case .remove: answers = ["\(become(.gone, from: [.active, .paused, .cancelled]))"]
    case .change: break
    case .pauseAll: _ = become(.paused, from: [.active])
    case .resumeAll: _ = become(.active, from: [.paused])
    case .look: answers = ["seen"]
    case .add, .addBoth:
      answers = ["added"]
      _ = become(.active, from: [.gone])
      after.addition = number
    }
    let isForOne = [.pause, .resume, .restart, .cancel, .change].contains(command)
    if isForOne, before.phase == .gone { answers = ["refused"] }
    if after.phase == .gone { after.addition = nil }
    return (after, answers)
  }
}

extension Call {
  typealias Answer = @Sendable (Result<String, any Error>) -> Void

  static func applying(
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

  static func applying(_ command: LifecycleCommand, _ number: Int, _ answer: @escaping Answer) -> Call {
    Call(number: number, ids: nil, isContinuation: false) { _ in
      { state, _ in state.apply(command, to: .matching(.all), after: 0) }
    } _: {
      answer($0.map { "\($0)" })
    }
  }

  /// A call that concerns no download.
  static func looking(_ number: Int, _ answer: @escaping Answer) -> Call {
    Call(number: number, ids: [], isContinuation: false) { _ in
      { _, _ in .over("seen") }
    } _: {
      answer($0)
    }
  }

  static func moving(_ id: DownloadID, _ number: Int, _ answer: @escaping Answer) -> Call {
    Call(number: number, ids: [id], isContinuation: false) { _ in
      { state, _ in state.change(id) { $0.destination.setName("moved") } }
    } _: {
      answer($0.map { _ in "moved" })
    }
  }

  static func removing(_ id: DownloadID, _ number: Int, _ answer: @escaping Answer) -> Call {
    Call(number: number, ids: [id], stopReason: .remove, isContinuation: false) { stopped in
      { state, _ in state.remove(.ids([id]), Removal(deletesFiles: false, ended: stopped.map { [$0] } ?? [])) }
    } _: {
      answer($0.map { "\($0 > 0)" })
    }
  }

  static func changing(_ id: DownloadID, _ number: Int, _ answer: @escaping Answer) -> Call {
    Call(number: number, ids: [id], isContinuation: false) { _ in
      { state, _ in state.change(id) { $0.metadata["call"] = "\(number)" } }
    } _: {
      answer($0.map { _ in "changed" })
    }
  }
}
