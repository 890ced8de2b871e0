// Applying changed settings to the stages in use.
extension Engine {
  /// Changes the settings in one turn, so that concurrent changes do not overwrite each other.
  func update<Value>(
    _ live: LiveSettings<Value>, excess: Excess, _ change: @escaping @Sendable (inout Value) throws -> Void
  ) async throws -> Value {
    try checkOpen()
    let (value, isRanked) = try await context.mailbox.perform { engine in
      let old = live.pipeline
      // Another downloader may have changed them.
      let kept = try await engine.store.settings()
      let new = try live.changed(from: kept, change)
      try await engine.store.keep(settings: new.json)
      live.set(new.value, new.pipeline)
      engine.adopt(new.pipeline, insteadOf: old, excess: excess)
      return (new.value, new.pipeline.ranking.name == old.ranking.name)
    }
    // Ranking takes many turns; downloads are leased meanwhile. The last of concurrent changes decides.
    if !isRanked { try await replace(scheduling: live.pipeline.scheduling ?? Arrival()) }
    return value
  }

  /// Replaces the stages that differ between two pipelines. Other stages are left alone: they have their own state, or
  /// the app has replaced them.
  private func adopt(_ new: Pipeline, insteadOf old: Pipeline, excess: Excess) {
    for gate in StageChanges(old.gates, new.gates).changed { state.gates.replace(gate) }
    for id in StageChanges(old.gates, new.gates).removed { _ = state.gates.remove(id: id) }
    let admission = StageChanges(old.admission, new.admission)
    for policy in admission.changed { state.stages.replace(policy) }
    for id in admission.removed { state.stages.removeAdmission(id: id) }
    if !admission.isEmpty { limitHosts() }
    // Downloads that exceed an unchanged limit were started by hand, or may end.
    if excess == .stops, !admission.isEmpty { decide { $0.enforceLimits(at: $1) } }
    let rates = StageChanges(old.rates, new.rates)
    for policy in rates.changed { replace(rate: policy) }
    for id in rates.removed { _ = removeRate(id: id) }
    if !StageChanges([old.retry], [new.retry]).changed.isEmpty { replace(retry: new.retry) }
    let segments = StageChanges(old.segments.map { [$0] } ?? [], new.segments.map { [$0] } ?? [])
    if !segments.isEmpty { replace(segments: new.segments) }
    showGates()
  }
}

/// The differences between two lists of stages, by id.
struct StageChanges<Element> {
  /// Stages that are new or differ.
  private(set) var changed: [Element] = []
  /// The ids of stages that are no longer there.
  private(set) var removed: [String] = []
  var isEmpty: Bool { changed.isEmpty && removed.isEmpty }

  init(_ old: [Element], _ new: [Element]) {
    func stage(_ element: Element) -> (any Stage)? { element as? any Stage }
    let known = Dictionary(old.compactMap(stage).map { ($0.id, $0) }) { $1 }
    for element in new {
      guard let stage = stage(element), let before = known[stage.id], stage.isInterchangeable(with: before) else {
        changed.append(element)
        continue
      }
    }
    let ids = Set(new.compactMap { stage($0)?.id })
    removed = old.compactMap { stage($0)?.id }.filter { !ids.contains($0) }
  }
}

extension Stage {
  /// Whether the stage is the same object as another one, or an equal value.
  fileprivate func isInterchangeable(with other: any Stage) -> Bool {
    if type(of: self) is AnyObject.Type { return (self as AnyObject) === (other as AnyObject) }
    func equals<Value: Equatable>(_ value: Value) -> Bool { other as? Value == value }
    if let value = self as? any Equatable { return equals(value) }
    return false
  }
}

/// The order of arrival, when settings leave out the scheduling policy.
private struct Arrival: SchedulingPolicy {
  func rank(_ context: RankingContext) -> Rank { Ranking.arrival.rank(context) }
}
