// How events are printed: what has happened, with ids, numbers and codes of errors, and without URLs or texts of servers.
extension EngineState.Event: CustomStringConvertible {
  var description: String {
    switch self {
    case .ended(_, let outcome): "the work has ended: \(outcome.name)"
    case .cleanedUp: "cleaned up after a lost lease"
    case .reported(let gate, let rule): "gate \(gate) reports that it is \(rule.name)"
    case .stop: "the downloader stops"
    case .called(let call): "call \(call.number) for \(call.ids.map { Self.list($0.sorted()) } ?? "all downloads")"
    case .addition(let addition):
      "call \(addition.number) adds \(Self.list(addition.additions.map(\.request.id)))"
    case .cancelledCall(let number): "call \(number) is cancelled"
    case .turnGoesOn: "the turn goes on"
    case .performed: "a job has ended"
    case .turnEnded: "the turn has ended"
    case .errandEnded(let errand, _, let changes):
      "an errand\(errand.command.map { " of call \($0)" } ?? "") has ended, after \(changes.summary)"
    case .exchanged(let answer, let changed): "exchange \(answer.summary), beside additions of \(changed.count)"
    case .fired(let timer, _): "the timer for “\(timer)” fires"
    case .room(let bytes): "the storage has \(bytes.map { "\($0) bytes" } ?? "an unknown space") left"
    case .lookedForOthers(let mayMatter):
      "looked for changes by others: further ones \(mayMatter.map { $0 ? "matter" : "do not matter" } ?? "are not told")"
    case .maintained: "leases were renewed"
    case .changedByOthers: "others have changed the ledger"
    case .queue(let mayExist): "downloads \(mayExist ? "may be" : "are not") queued"
    case .ranked: "the ledger ranks by the pipeline's policy"
    case .changed(let changes): "a change of the ledger: \(changes.summary)"
    case .ledgerFailed(let error): "the ledger has failed: \(error.code)"
    case .replaced(let replacement): "replaced: \(replacement.name)"
    case .suspended: "the downloader is suspended"
    case .suspensionEnds: "a call ends the suspension"
    case .suspensionEnded(let call, _): "the suspension ends, unless it was changed after call \(call)"
    case .awaitsIdleness: "a caller waits until the downloader is idle"
    case .awaitsIdlenessNoLonger: "a caller waits no longer"
    case .over: "the loop has ended"
    case .news(let audience, let needsTurn):
      "all was received\(needsTurn ? ", a turn is needed" : "")\(audience.isAnythingWatched ? ", watched" : "")"
    }
  }

  /// The download that it concerns alone; `nil` for others.
  var id: DownloadID? {
    switch self {
    case .ended(let run, _), .cleanedUp(let run): run.id
    case .called(let call): call.ids?.count == 1 ? call.ids?.first : nil
    case .errandEnded(let errand, _, _): errand.ids.count == 1 ? errand.ids.first : nil
    default: nil
    }
  }

  private static func list(_ ids: [DownloadID]) -> String {
    ids.count <= 4 ? ids.map(\.rawValue).joined(separator: ", ") : "\(ids.count) downloads"
  }
}

extension Outcome {
  fileprivate var name: String {
    switch self {
    case .published: "published"
    case .failed(let error, _): "failed, \(error.code)"
    case .stopped(let reason): "stopped, \(reason.name)"
    case .notOwned: "another owner has it"
    }
  }
}

extension Exchange.Answer {
  fileprivate var summary: String {
    let made = "\(exchange.number)\(exchange.isRepeated ? ", made again," : "")"
    switch result {
    case .success(let answer):
      return "\(made) has saved \(answer.saved.count(where: \.self)) of \(unsaved.count) and leased "
        + "\(answer.leased.count)\(answer.isGivenAgain ? ", by an earlier attempt" : "")"
    case .failure: return "\(made) has failed with \(unsaved.count) outcomes"
    }
  }
}

extension Changes {
  fileprivate var summary: String {
    let count = ids.count + (transitions + updates).reduce(0) { $0 + $1.count }
    let gone = removed.reduce(0) { $0 + $1.count }
    return "\(count) changed, \(gone) removed\(mustLookAgain ? ", perhaps more" : "")"
  }
}

extension GateRule {
  fileprivate var name: String {
    switch extent {
    case .all(.open): "open"
    case .all(.closed): "closed"
    case .each: "open for some"
    }
  }
}

extension Replacement {
  fileprivate var name: String {
    switch self {
    case .gate(let gate): "gate \(gate.id)"
    case .noGate(let id): "gate \(id), by none"
    case .scheduling: "scheduling policy"
    case .rate(let policy): "rate policy \(policy.id)"
    case .noRate(let id): "rate policy \(id), by none"
    case .retry: "retry policy"
    case .segments: "segment policy"
    case .source(let source, _): "source \(source.id)"
    }
  }
}
