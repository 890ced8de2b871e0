/// A step for the downloads that a condition is true of; see ``PostProcessor/when(_:)``.
public struct ConditionalStep<Step: Stage>: Stage {
  let step: Step
  let condition: @Sendable (ProcessingContext) -> Bool

  /// The step's own.
  public var id: String { step.id }
  /// The step's own.
  public var name: String { step.name }
  /// The step's own, and that there is a condition.
  public var summary: String { step.summary.isEmpty ? "where asked" : "\(step.summary), where asked" }

  /// Adds the step, which decides for each download. It is not relied upon for digests, since it may be left out.
  public func contribute(to parts: inout PipelineParts) {
    var own = PipelineParts()
    step.contribute(to: &own)
    parts.steps += own.steps.map { [condition] base in
      PipelineStep(
        name: name, summary: summary, input: base.input, output: base.output,
        isNeeded: { condition($0) && base.isNeeded($0) }, process: base.process)
    }
  }
}

// The compiler still sees what the step takes and gives.
extension ConditionalStep: PostProcessor where Step: PostProcessor {
  /// What the step takes.
  public typealias Input = Step.Input
  /// What the step gives.
  public typealias Output = Step.Output

  /// The step's own work.
  public func process(_ input: Input, in context: ProcessingContext) async throws -> Output {
    try await step.process(input, in: context)
  }

  /// Whether the condition is true, and the step has anything to do.
  public func isNeeded(in context: ProcessingContext) -> Bool { condition(context) && step.isNeeded(in: context) }
}

extension PostProcessor where Input == Output {
  /// The step for the downloads that the condition is true of; the others skip it at no cost.
  ///
  /// ```swift
  /// Gunzip().when { $0.request.metadata["unpack"] == "yes" }
  /// ```
  /// A request can also name its steps: see ``DownloadRequest/steps``.
  /// - Parameter condition: cheap and pure; the context has no workspace yet.
  public func when(_ condition: @escaping @Sendable (ProcessingContext) -> Bool) -> ConditionalStep<Self> {
    ConditionalStep(step: self, condition: condition)
  }
}

extension PostProcessor {
  /// Refused for a step that changes the form.
  @available(
    *, unavailable,
    message: "a step that changes the form (File or Directory) cannot be left out: what follows needs it"
  )
  @_disfavoredOverload
  public func when(_ condition: @escaping @Sendable (ProcessingContext) -> Bool) -> ConditionalStep<Self> {
    ConditionalStep(step: self, condition: condition)
  }
}

extension UniversalPostProcessor {
  /// The step for the downloads that the condition is true of; the others skip it at no cost.
  /// - Parameter condition: cheap and pure; the context has no workspace yet.
  public func when(_ condition: @escaping @Sendable (ProcessingContext) -> Bool) -> ConditionalStep<Self> {
    ConditionalStep(step: self, condition: condition)
  }
}
