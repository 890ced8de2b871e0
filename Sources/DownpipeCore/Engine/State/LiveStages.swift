/// The current stages, and the sessions of replaced sources, which are stopped when no run uses them any more, or with the
/// downloader.
struct LiveStages: Sendable {
  private(set) var current: StartedPipeline
  private(set) var limits: AdmissionLimits
  private var retired: [(sourcesVersion: Int, session: any SourceSession)] = []

  init(_ pipeline: Pipeline, sessions: [any SourceSession]) {
    current = StartedPipeline(pipeline, sessions: sessions, sourcesVersion: 0)
    limits = AdmissionLimits(pipeline.limits)
  }

  /// Whether there are sessions of replaced sources that have not been stopped.
  var hasRetired: Bool { !retired.isEmpty }

  /// Changes the pipeline for future runs.
  mutating func change(_ body: (inout Pipeline) -> Void) {
    var pipeline = current.pipeline
    body(&pipeline)
    current = StartedPipeline(pipeline, sessions: current.sessions, sourcesVersion: current.sourcesVersion)
  }

  /// Replaces the admission policy with the same id, or adds the policy after the others.
  mutating func replace(_ policy: any AdmissionPolicy) {
    change { $0.admission.set(policy, by: \.id) }
    limits.replace(policy, in: current.pipeline)
  }

  /// Removes the admission policy with an id.
  /// - Returns: Whether there was such a policy.
  @discardableResult
  mutating func removeAdmission(id: String) -> Bool {
    let count = current.pipeline.admission.count
    change { $0.admission.removeAll { $0.id == id } }
    guard current.pipeline.admission.count < count else { return false }
    limits.remove(id: id, in: current.pipeline)
    return true
  }

  /// Replaces the source with the same id, or adds the source after the others.
  ///
  /// - Parameters:
  ///   - source: The stage.
  ///   - session: The session that the source's start returned.
  mutating func replace(_ source: any Source, session: any SourceSession) {
    var pipeline = current.pipeline
    var sessions = current.sessions
    var sourcesVersion = current.sourcesVersion
    if let index = pipeline.sources.firstIndex(where: { $0.id == source.id }) {
      pipeline.sources[index] = source
      retired.append((sourcesVersion, sessions[index]))
      sourcesVersion += 1
      sessions[index] = session
    } else {
      pipeline.sources.append(source)
      sessions.append(session)
    }
    current = StartedPipeline(pipeline, sessions: sessions, sourcesVersion: sourcesVersion)
  }

  /// Removes and returns the sessions of replaced sources that no run uses.
  /// - Parameter oldest: The sourcesVersion of the oldest run; `nil` if there is none.
  mutating func takeIdle(oldest: Int?) -> [any SourceSession] {
    let oldest = oldest ?? current.sourcesVersion
    let idle = retired.filter { $0.sourcesVersion < oldest }
    retired.removeAll { $0.sourcesVersion < oldest }
    return idle.map(\.session)
  }

  /// Those that have not been stopped.
  var allSessions: [any SourceSession] { current.sessions + retired.map(\.session) }
}
