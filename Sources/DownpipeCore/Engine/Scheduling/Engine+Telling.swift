// What those who watch are told of downloads that wait. Runs tell of themselves.
extension Engine {
  /// Publishes how a download stands that does not run, and follows the reason for which it waits.
  func publish(_ record: DownloadRecord) {
    guard hub.isWatched(record.id) else { return }
    let status = status(of: record)
    reasons.note(record.id, record.candidate, status.state)
    hub.publish(stateOf: status)
  }

  /// Publishes how downloads stand, as far as they do not run.
  func publishStates(of ids: [DownloadID]) async {
    guard !ids.isEmpty else { return }
    guard let records = try? await store.records(of: ids) else { return }
    for record in records where slots.runs[record.id] == nil { publish(record) }
  }

  /// Tells those who watch single downloads that do not run here how these stand: other owners may have changed them.
  func publishWatched() async {
    let ids = hub.watchedDownloads.filter { slots.runs[$0] == nil }
    guard !ids.isEmpty, let records = try? await store.records(of: ids) else { return }
    for record in records where slots.runs[record.id] == nil { publish(record) }
    let found = Set(records.map(\.id))
    for id in ids where !found.contains(id) && slots.runs[id] == nil {
      // Asked once more: it may just have been added.
      if (try? await store.record(id)) == .some(nil) { hub.finish(id) }
    }
  }

  // MARK: Reasons

  /// Publishes each download that waits for another reason than it was last told to.
  func tellReasons() async {
    guard hub.isAnythingWatched else { return reasons.forgetAll() }
    await fillReasons()
    let changed = reasons.takeChanged { reason(for: $0) }
    await publishStates(of: reasons.unknown(of: hub.watchedDownloads).filter { slots.runs[$0] == nil })
    if reasons.isIncomplete, !changed.isEmpty { hub.publishIncomplete() }
    for start in stride(from: 0, to: changed.count, by: 500) {
      await publishStates(of: Array(changed[start..<min(start + 500, changed.count)]))
    }
  }

  /// Looks a moment later, when slots have been filled again: what changes in between changes back.
  func lookAtReasons() async {
    for _ in 0..<5 {
      guard (try? await time.sleep(for: options.progressInterval, purpose: .reasons)) != nil else { break }
      if !outbox.isExchanging { break }
    }
    reasons.isLooking = false
    if reasons.mayHaveChanged { await tellReasons() }
  }

  /// Begins to follow those that waited before a watcher came.
  private func fillReasons() async {
    let watchers = hub.watchersOfAll
    guard watchers > 0, reasons.filledFor != watchers else { return }
    reasons.filledFor = watchers
    var query = DownloadQuery(phases: [.waiting], location: context.storage.location, order: .rank)
    query.limit = WaitingReasons.most
    guard let records = try? await store.records(query) else { return }
    for record in records where slots.runs[record.id] == nil && reasons.told[record.id] == nil {
      // What was told of it before is not known: the reason that it has at first.
      if case .waiting(let reason) = state(of: record), reason.dependsOnOthers {
        reasons.note(record.id, record.candidate, .waiting(.turn))
      }
    }
    if records.count == WaitingReasons.most { hub.publishIncomplete() }
  }
}
