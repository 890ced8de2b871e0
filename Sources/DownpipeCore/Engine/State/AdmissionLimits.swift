/// The admission policies in effect, with their sessions.
struct AdmissionLimits: Sendable {
  private struct Limit: Sendable {
    let id: String
    let session: any AdmissionSession
    /// `nil` if it has none.
    let shared: (@Sendable (Candidate) -> [SharedLimit])?

    init(_ policy: any AdmissionPolicy) {
      (id, session) = (policy.id, policy.start())
      if policy.hasSharedLimits {
        shared = { @Sendable candidate in policy.sharedLimits(for: candidate) }
      } else {
        shared = nil
      }
    }
  }

  private var limits: [Limit]
  /// Grows with each replaced policy.
  private(set) var replacements = 0

  init(_ policies: [any AdmissionPolicy]) { limits = policies.map(Limit.init) }

  /// The order of the first policy that has one.
  var order: CandidateOrder? { limits.lazy.compactMap(\.session.order).first }

  /// The limits that hold for all owners of the ledger together; `nil` if there are none.
  var shared: (@Sendable (Candidate) -> [SharedLimit])? {
    let all = limits.compactMap(\.shared)
    guard !all.isEmpty else { return nil }
    return { @Sendable candidate in all.flatMap { $0(candidate) } }
  }

  /// Replaces the policy with the same id, or adds it; the sessions of the other policies go on.
  mutating func replace(_ policy: any AdmissionPolicy, in pipeline: Pipeline) {
    let known = Set(pipeline.admission.map(\.id))
    // A pipeline without policies has a default limit, which its first policy replaces.
    limits.removeAll { !known.contains($0.id) }
    limits.set(Limit(policy), by: \.id)
    replacements &+= 1
  }

  /// Removes the policy with an id; the sessions of the other policies go on.
  mutating func remove(id: String, in pipeline: Pipeline) {
    limits.removeAll { $0.id == id }
    // Without policies, the default limit of the pipeline applies.
    if limits.isEmpty { limits = AdmissionLimits(pipeline.limits).limits }
    replacements &+= 1
  }

  /// The answer of the first policy that does not admit a download; `.admitted` if all do.
  func admit(_ candidate: Candidate, beside running: RunningDownloads, at now: Duration) -> Admission {
    for limit in limits {
      let admission = limit.session.admit(candidate, beside: running, at: now)
      if admission != .admitted { return admission }
    }
    return .admitted
  }

  /// Why a download may not start beside others; `nil` if it may.
  func refusal(
    _ candidate: Candidate, beside running: RunningDownloads, at now: Duration
  ) -> (id: String, text: String)? {
    for limit in limits {
      if let text = limit.session.admit(candidate, beside: running, at: now).reason { return (limit.id, text) }
    }
    return nil
  }

  /// Why a running download must stop for the others; `nil` if it may go on.
  func stops(
    _ candidate: Candidate, beside running: RunningDownloads, at now: Duration
  ) -> (id: String, text: String)? {
    for limit in limits {
      let admission = limit.session.admit(candidate, beside: running, at: now)
      // A time until which no download starts does not end those that run.
      if case .wait = admission { continue }
      if let text = admission.reason { return (limit.id, text) }
    }
    return nil
  }

  func started(_ candidate: Candidate, at now: Duration) {
    for limit in limits { limit.session.started(candidate, at: now) }
  }

  func ended(_ candidate: Candidate, _ end: RunEnd) {
    for limit in limits { limit.session.ended(candidate, end) }
  }
}

extension Admission {
  /// Why a download may not start; `nil` if it may.
  var reason: String? {
    switch self {
    case .admitted: nil
    case .full(let reason), .hostFull(let reason), .refused(let reason), .wait(let reason, _, _): reason
    }
  }
}
