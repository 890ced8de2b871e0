internal import Foundation

/// The stages of a run: the pipeline at the start of the run, and the sessions of its sources.
///
/// Immutable; the engine creates another one when a stage is replaced.
final class StartedPipeline: Sendable {
  let pipeline: Pipeline
  /// The sessions of the pipeline's sources, in the same order.
  let sessions: [any SourceSession]
  /// A number that grows when a source is replaced.
  let sourcesVersion: Int

  init(_ pipeline: Pipeline, sessions: [any SourceSession], sourcesVersion: Int) {
    self.pipeline = pipeline
    self.sessions = sessions
    self.sourcesVersion = sourcesVersion
  }

  var sources: [any Source] { pipeline.sources }

  /// The first source that accepts a URL, and its session.
  func source(for url: URL) -> (stage: any Source, session: any SourceSession)? {
    guard let index = sources.firstIndex(where: { $0.accepts(url) }) else { return nil }
    return (sources[index], sessions[index])
  }
}
