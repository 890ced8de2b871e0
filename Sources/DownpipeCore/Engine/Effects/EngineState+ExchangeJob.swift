internal import Synchronization

// The job of a turn that saves outcomes, adds downloads and leases downloads.
extension EngineState {
  private mutating func takeAdditions() -> Additions {
    defer { additions = [] }
    return Additions(all: additions, before: additions.isEmpty ? OrderedTable() : slots.requests)
  }

  /// Saves outcomes in the ledger, adds downloads and leases downloads.
  mutating func beginExchangeJob(at instant: Instant) -> Job? {
    let exchange = beginExchange(at: instant)
    guard exchange != nil || !additions.isEmpty else { return nil }
    turn.isRepeated = true
    guard let exchange else { return addWaiting() }
    return perform(exchange)
  }

  /// Performs an exchange, and adds what callers have asked for.
  mutating func perform(_ exchange: Exchange) -> Job {
    Job { [additions = takeAdditions()] context, _ in
      // In a task of its own, which is not cancelled: what has been saved would not be known. The ledger adds meanwhile, in
      // the same transaction if it can.
      let task = context.executors.start { await exchange.perform(in: context) }
      let added = await context.add(additions)
      return (await task.value, added)
    } then: { state, instant, found in
      let answer = found.0
      var added = found.1
      if case .success(let exchange) = answer.result {
        for record in exchange.leased { added.before[record.id] = record.request }
      }
      state.receive(.exchanged(answer, changed: added.changed), at: instant)
      state.take(added, at: instant)
      return nil
    }
  }

  /// Adds what callers have asked for.
  mutating func addWaiting() -> Job {
    Job { [additions = takeAdditions()] context, _ in
      await context.add(additions)
    } then: { state, instant, added in
      state.take(added, at: instant)
      return nil
    }
  }

  /// Tells runs and watchers about additions.
  mutating func take(_ added: Added, at instant: Instant) {
    turn.answers += added.answers
    outbox.note(changed: added.changed)
    guard !added.outcomes.isEmpty else { return }
    // Others may have waited for them.
    mayLeaseMore()
    // A run whose download was added twice in this turn takes over what the later addition has made of it.
    var latest: [DownloadID: DownloadRecord] = [:]
    for outcome in added.outcomes {
      let record = outcome.record
      if slots.runs[record.id] != nil { latest[record.id] = record }
      if !outcome.isNew { noteDelay(of: record) }
    }
    for outcome in added.outcomes {
      let record = outcome.record
      if slots.runs[record.id] != nil {
        guard let last = latest.removeValue(forKey: record.id) else { continue }
        takeOver(last, since: added.before[record.id])
      } else if outcome.isNew, record.waitsFor.isEmpty {
        publish(record, isNew: true, at: instant)
      } else if added.changed.contains(record.id) || record.phase.isActive {
        noteChange(of: CollectionOfOne(record.id))
      }
    }
  }

  /// Lets the turn look for the next due time if a change may have released a download that has one: there is no
  /// timer for the due time of a download that waits for others.
  mutating func noteDelay(of record: DownloadRecord) {
    if record.isQueued, record.notBefore != nil { due.insert(.timer) }
  }
}
