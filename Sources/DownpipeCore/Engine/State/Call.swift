internal import Foundation

/// What a caller asks of the engine.
struct Call: Sendable {
  /// A later call has a larger number.
  let number: Int
  /// The downloads that it concerns: earlier commands for them come first. `nil` for all; if it concerns none, it waits for
  /// no command.
  let ids: Set<DownloadID>?
  /// Why the run of its download is stopped at once, unless an earlier command has yet to decide; `nil` if it is not.
  let stopReason: StopReason?
  /// Whether it belongs to a command that was called before: it is not refused while the downloader stops.
  let isContinuation: Bool
  /// Whether it adds downloads: what follows each other is added together.
  let isAddition: Bool
  /// What it decides in its turn, which gets the run that was stopped at once.
  let decision: @Sendable (Run?) -> AnyDecision
  let fail: @Sendable (any Error) -> Void

  /// - Parameter answer: Called once, with what the caller gets.
  init<Value>(
    number: Int, ids: Set<DownloadID>?, stopReason: StopReason? = nil, isContinuation: Bool,
    isAddition: Bool = false, _ decision: @escaping @Sendable (Run?) -> Decision<Value>,
    _ answer: @escaping @Sendable (Result<Value, any Error>) -> Void
  ) {
    (self.number, self.ids, self.stopReason, self.isContinuation) = (number, ids, stopReason, isContinuation)
    self.isAddition = isAddition
    self.decision = { AnyDecision(decision($0), answer) }
    fail = { answer(.failure($0)) }
  }
}

/// Downloads to be added. Those of several callers are added together, beside the exchange of the turn.
struct Addition: Sendable {
  /// In the order of calls.
  let number: Int
  let additions: [LedgerAddition]
  /// Whether earlier commands for these downloads come first.
  let isAfterCommands: Bool
  /// Has to succeed in the same turn before the downloads are added.
  let check: (@Sendable (EngineContext) async throws -> Void)?
  let answer: @Sendable (Result<[LedgerAddOutcome], any Error>) -> Void
}

/// What is added together.
struct Additions: Sendable {
  let all: [Addition]
  /// The requests of the runs.
  let before: OrderedTable<DownloadID, DownloadRequest>
}

/// What was added in a turn.
struct Added: Sendable {
  var outcomes: [LedgerAddOutcome] = []
  /// The requests of the runs before.
  var before: OrderedTable<DownloadID, DownloadRequest>
  /// The downloads that are new or have changed.
  var changed: Set<DownloadID> = []
  var answers: [Answer] = []

  mutating func note(_ outcomes: ArraySlice<LedgerAddOutcome>, at now: Date) {
    self.outcomes += outcomes
    // What others have changed is left to its readers.
    for outcome in outcomes where outcome.isNew || outcome.isChanged(by: now) { changed.insert(outcome.record.id) }
  }
}

extension LedgerAddOutcome {
  /// Whether the record was last changed by an addition with this date; ledgers may round dates to milliseconds.
  fileprivate func isChanged(by date: Date) -> Bool { record.updatedAt >= date.addingTimeInterval(-0.001) }
}
