/// The stages that are in force, and sources that were replaced: runs may still use them, so they are stopped last.
struct LiveStages: Sendable {
  private(set) var current: StartedPipeline
  private var retired: [(epoch: Int, source: any Source)] = []

  init(_ pipeline: Pipeline, sources: [any Source]) {
    current = StartedPipeline(pipeline, sources: sources, epoch: 0)
  }

  /// Whether a replaced source has not been stopped yet.
  var hasRetired: Bool { !retired.isEmpty }

  /// Changes the pipeline for the runs to come.
  mutating func change(_ body: (inout Pipeline) -> Void) {
    var pipeline = current.pipeline
    body(&pipeline)
    current = StartedPipeline(pipeline, sources: current.sources, epoch: current.epoch)
  }

  /// Puts a source in the place of the one with its name, or adds it behind the others.
  ///
  /// - Parameters:
  ///   - source: the stage.
  ///   - started: what its start returned.
  mutating func replace(_ source: any Source, started: any Source) {
    var pipeline = current.pipeline
    var sources = current.sources
    var epoch = current.epoch
    if let index = pipeline.sources.firstIndex(where: { $0.name == source.name }) {
      pipeline.sources[index] = source
      retired.append((epoch, sources[index]))
      epoch += 1
      sources[index] = started
    } else {
      pipeline.sources.append(source)
      sources.append(started)
    }
    current = StartedPipeline(pipeline, sources: sources, epoch: epoch)
  }

  /// Takes out the replaced sources that no run uses any more.
  /// - Parameter oldest: the epoch of the oldest run; `nil` when nothing runs.
  mutating func takeIdle(oldest: Int?) -> [any Source] {
    let oldest = oldest ?? current.epoch
    let idle = retired.filter { $0.epoch < oldest }
    retired.removeAll { $0.epoch < oldest }
    return idle.map(\.source)
  }

  /// Takes out every source, at the end.
  mutating func takeAllSources() -> [any Source] {
    defer { retired = [] }
    return current.sources + retired.map(\.source)
  }
}
