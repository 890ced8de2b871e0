/// The stages that are in force, and sessions of sources that were replaced: runs may still use them, so they are
/// stopped last.
struct LiveStages: Sendable {
  private(set) var current: StartedPipeline
  private var retired: [(epoch: Int, session: any SourceSession)] = []

  init(_ pipeline: Pipeline, sessions: [any SourceSession]) {
    current = StartedPipeline(pipeline, sessions: sessions, epoch: 0)
  }

  /// Whether the session of a replaced source has not been stopped yet.
  var hasRetired: Bool { !retired.isEmpty }

  /// Changes the pipeline for the runs to come.
  mutating func change(_ body: (inout Pipeline) -> Void) {
    var pipeline = current.pipeline
    body(&pipeline)
    current = StartedPipeline(pipeline, sessions: current.sessions, epoch: current.epoch)
  }

  /// Puts a source in the place of the one with its id, or adds it behind the others.
  ///
  /// - Parameters:
  ///   - source: the stage.
  ///   - session: what its start returned.
  mutating func replace(_ source: any Source, session: any SourceSession) {
    var pipeline = current.pipeline
    var sessions = current.sessions
    var epoch = current.epoch
    if let index = pipeline.sources.firstIndex(where: { $0.id == source.id }) {
      pipeline.sources[index] = source
      retired.append((epoch, sessions[index]))
      epoch += 1
      sessions[index] = session
    } else {
      pipeline.sources.append(source)
      sessions.append(session)
    }
    current = StartedPipeline(pipeline, sessions: sessions, epoch: epoch)
  }

  /// Takes out the sessions of replaced sources that no run uses any more.
  /// - Parameter oldest: the epoch of the oldest run; `nil` when nothing runs.
  mutating func takeIdle(oldest: Int?) -> [any SourceSession] {
    let oldest = oldest ?? current.epoch
    let idle = retired.filter { $0.epoch < oldest }
    retired.removeAll { $0.epoch < oldest }
    return idle.map(\.session)
  }

  /// Takes out every session, at the end.
  mutating func takeAllSessions() -> [any SourceSession] {
    defer { retired = [] }
    return current.sessions + retired.map(\.session)
  }
}
