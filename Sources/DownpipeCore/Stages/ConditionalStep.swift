/// A step that runs only for downloads that meet a condition; see ``PostProcessor/when(_:)``.
public struct ConditionalStep<Step: Stage>: Stage {
  let step: Step
  let condition: @Sendable (ProcessingContext) -> Bool

  /// The identifier of the step.
  public var id: String { step.id }
  /// The name of the step.
  public var name: String { step.name }
  /// The summary of the step, with the word "conditional".
  public var summary: String { step.summary.isEmpty ? "conditional" : "\(step.summary), conditional" }

  /// Adds the step with its condition to the pipeline.
  ///
  /// A step that verifies digests does not count as ``DigestVerifying`` here, because it may be skipped. A request that
  /// expects a digest is accepted if the condition is met for it.
  public func contribute(to parts: inout PipelineParts) {
    var own = PipelineParts()
    step.contribute(to: &own)
    parts.steps += own.steps.map { [condition] base in
      PipelineStep(
        name: name, summary: summary, input: base.input, output: base.output, verifies: base.verifier,
        isNeeded: { condition($0) && base.isNeeded($0) },
        follower: { condition($0) ? base.follower($0) : nil }, followerWrites: base.followerWrites,
        keepsContent: base.keepsContent, outputFolders: base.outputFolders, process: base.process)
    }
  }
}

// The compiler still checks what the step takes and returns.
extension ConditionalStep: PostProcessor where Step: PostProcessor {
  /// The form that the step takes.
  public typealias Input = Step.Input
  /// The form that the step returns.
  public typealias Output = Step.Output

  /// Does the work of the step.
  public func process(_ input: Input, in context: ProcessingContext) async throws -> Output {
    try await step.process(input, in: context)
  }

  /// Whether the condition is met and the step has work to do.
  public func isNeeded(in context: ProcessingContext) -> Bool { condition(context) && step.isNeeded(in: context) }

  /// Returns the step's follower if the condition is met.
  public func follower(in context: ProcessingContext) -> (any TransferFollower)? {
    condition(context) ? step.follower(in: context) : nil
  }

  /// Whether the step's follower writes to the workspace.
  public var followerWrites: Bool { step.followerWrites }

  /// Whether the step returns the bytes that it takes.
  public var keepsContent: Bool { step.keepsContent }

  /// The folders in which the step's output may be.
  public func outputFolders(in context: ProcessingContext) -> [String] { step.outputFolders(in: context) }
}

extension PostProcessor where Input == Output {
  /// Returns a step that runs only for downloads that meet the condition. Other downloads skip it at no cost.
  ///
  /// ```swift
  /// Gunzip().when { $0.request.metadata["unpack"] == "yes" }
  /// ```
  /// A request can also name its steps; see ``DownloadRequest/steps``.
  /// - Parameter condition: Decides for a download. It must be cheap and pure. Its context has no workspace yet.
  public func when(_ condition: @escaping @Sendable (ProcessingContext) -> Bool) -> ConditionalStep<Self> {
    ConditionalStep(step: self, condition: condition)
  }
}

extension PostProcessor {
  /// Unavailable: a step that changes the form of the artifact cannot be skipped.
  @available(
    *, unavailable,
    message: "a step that changes the form (File or Directory) cannot be conditional: the next step needs its output"
  )
  @_disfavoredOverload
  public func when(_ condition: @escaping @Sendable (ProcessingContext) -> Bool) -> ConditionalStep<Self> {
    ConditionalStep(step: self, condition: condition)
  }
}

extension UniversalPostProcessor {
  /// Returns a step that runs only for downloads that meet the condition. Other downloads skip it at no cost.
  /// - Parameter condition: Decides for a download. It must be cheap and pure. Its context has no workspace yet.
  public func when(_ condition: @escaping @Sendable (ProcessingContext) -> Bool) -> ConditionalStep<Self> {
    ConditionalStep(step: self, condition: condition)
  }
}
