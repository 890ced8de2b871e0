/// What takes the place of the stage with its id, or is added; or the id of a stage that is removed.
enum Replacement: Sendable {
  case gate(any Gate)
  case noGate(id: String)
  case scheduling(any SchedulingPolicy)
  case rate(any RatePolicy)
  case noRate(id: String)
  case retry(any RetryPolicy)
  case segments((any SegmentPolicy)?)
  case source(any Source, any SourceSession)
}

// Replacing stages while a downloader runs.
extension EngineState {
  mutating func replace(_ replacement: Replacement) {
    switch replacement {
    case .gate(let gate): replace(gate: gate)
    case .noGate(let id): removeGate(id: id)
    case .scheduling(let policy): stages.change { $0.scheduling = policy }
    case .rate(let policy): replace(rate: policy)
    case .noRate(let id): removeRate(id: id)
    case .retry(let policy): replace(retry: policy)
    case .segments(let policy): replace(segments: policy)
    case .source(let source, let session):
      stages.replace(source, session: session)
      stopUnusedSessions()
      due.insert([.leases, .turn])
    }
  }

  /// Stops the sessions of replaced sources that no run uses.
  mutating func stopUnusedSessions() {
    guard stages.hasRetired else { return }
    let oldest = slots.runs.values.map(\.stages.sourcesVersion).min()
    for session in stages.takeIdle(oldest: oldest) { add(.stop(session)) }
  }

  private mutating func replace(gate: any Gate) {
    gates.replace(gate)
    showGates()
  }

  private mutating func removeGate(id: String) { if gates.remove(id: id) { showGates() } }

  /// Updates the gates of the pipeline, which has no list of its own.
  private mutating func showGates() {
    let gates = gates.stages
    stages.change { $0.gates = gates }
    context.policies.gates = gates
    noteGates()
    due.insert(.turn)
  }

  /// Replaces an admission policy. Done in a turn, so that nothing is leased with the old policy meanwhile.
  mutating func replace(admission policy: any AdmissionPolicy, excess: Excess, at instant: Instant) {
    stages.replace(policy)
    applyLimits(excess, at: instant)
  }

  mutating func removeAdmission(id: String, excess: Excess, at instant: Instant) -> Bool {
    guard stages.removeAdmission(id: id) else { return false }
    // Without policies there is a default limit.
    applyLimits(excess, at: instant)
    return true
  }

  /// Applies changed limits to running downloads, and to the connections of running transfers.
  private mutating func applyLimits(_ excess: Excess, at instant: Instant) {
    context.connections.setLimit(stages.current.pipeline.limitPerHost)
    if excess == .stops { enforceLimits(at: instant) }
  }

  private mutating func replace(rate policy: any RatePolicy) {
    context.rates.replace(policy)
    add(.leaseSharedRates)
    stages.change { $0.rates.set(policy, by: \.id) }
  }

  private mutating func removeRate(id: String) {
    stages.change { $0.rates.removeAll { $0.id == id } }
    context.rates.remove(id: id)
  }

  private mutating func replace(retry policy: any RetryPolicy) {
    stages.change { $0.retry = policy }
    context.policies.retry = policy
  }

  private mutating func replace(segments policy: (any SegmentPolicy)?) { stages.change { $0.segments = policy } }

  /// Replaces the stages that differ between two pipelines. Other stages are left alone: they have their own state, or
  /// the app has replaced them.
  mutating func adopt(_ new: Pipeline, insteadOf old: Pipeline, excess: Excess, at instant: Instant) {
    let gates = StageChanges(old.gates, new.gates)
    for gate in gates.changed { replace(gate: gate) }
    for id in gates.removed { removeGate(id: id) }
    let admission = StageChanges(old.admission, new.admission)
    for policy in admission.changed { stages.replace(policy) }
    for id in admission.removed { stages.removeAdmission(id: id) }
    // Downloads that exceed an unchanged limit were started by hand, or may end.
    if !admission.isEmpty { applyLimits(excess, at: instant) }
    let rates = StageChanges(old.rates, new.rates)
    for policy in rates.changed { replace(rate: policy) }
    for id in rates.removed { removeRate(id: id) }
    if !StageChanges([old.retry], [new.retry]).changed.isEmpty { replace(retry: new.retry) }
    let segments = StageChanges(old.segments.map { [$0] } ?? [], new.segments.map { [$0] } ?? [])
    if !segments.isEmpty { replace(segments: new.segments) }
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
