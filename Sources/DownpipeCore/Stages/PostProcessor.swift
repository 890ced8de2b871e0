/// A step after the transfer: turns one artifact into the next.
///
/// A step never mutates its own configuration. It writes what is new into ``ProcessingContext/workspace``,
/// under another name than its input has, and returns it; its ``Artifact/name`` is a single path component. The engine
/// records the result and only then removes the input. After a crash a step that was not recorded runs again from its input.
///
/// ```swift
/// struct Reverse: PostProcessor {
///   func process(_ file: File, in context: ProcessingContext) async throws -> File { … }
/// }
/// ```
public protocol PostProcessor<Input, Output>: Stage {
  /// What it takes.
  associatedtype Input: ArtifactForm
  /// What it gives.
  associatedtype Output: ArtifactForm

  /// Does the work. It may block; the engine runs it on threads made for that.
  ///
  /// Cancelling the task ends it; what it left in the workspace is removed.
  /// - Throws: ``DownloadError``; any other error is reported with `.processing`.
  func process(_ input: Input, in context: ProcessingContext) async throws -> Output

  /// Whether there is anything to do for this download: a step that keeps the form is skipped, at no cost, when
  /// there is not. True unless the step says otherwise. Cheap and pure; the context has no workspace yet.
  func isNeeded(in context: ProcessingContext) -> Bool
}

extension PostProcessor {
  /// True.
  public func isNeeded(in context: ProcessingContext) -> Bool { true }

  /// Adds the step behind those that are there.
  public func contribute(to parts: inout PipelineParts) {
    parts.steps.append(
      PipelineStep(
        name: name, summary: summary, input: Input.kind, output: Output.kind,
        verifiesDigests: self is any DigestVerifying,
        isNeeded: { Input.kind != Output.kind || isNeeded(in: $0) },
        process: { artifact, context in try await process(Input(artifact), in: context).artifact }))
  }
}

/// A step that takes an artifact of any form and gives back the same form: moving, checking, notifying.
public protocol UniversalPostProcessor: Stage {
  /// Does the work; the same contract as ``PostProcessor/process(_:in:)``.
  func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact

  /// Whether there is anything to do for this download; see ``PostProcessor/isNeeded(in:)``.
  func isNeeded(in context: ProcessingContext) -> Bool
}

extension UniversalPostProcessor {
  /// True.
  public func isNeeded(in context: ProcessingContext) -> Bool { true }

  /// Adds the step behind those that are there.
  public func contribute(to parts: inout PipelineParts) {
    parts.steps.append(
      PipelineStep(
        name: name, summary: summary, input: nil, output: nil, verifiesDigests: self is any DigestVerifying,
        isNeeded: isNeeded(in:),
        process: { artifact, context in try await process(artifact, in: context) }))
  }
}

/// A step that compares the whole file with the digests in its context, and fails where they differ. Only with such
/// a step a pipeline believes that a digest will tell; see ``ResumeValidation/digest``.
public protocol DigestVerifying: Stage {}

/// A step with its types erased, as the pipeline keeps it.
public struct PipelineStep: Sendable {
  /// The step's name.
  public let name: String
  /// What the step is set to.
  public let summary: String
  /// What it takes; any kind when `nil`.
  public let input: Artifact.Kind?
  /// What it gives; the kind it took when `nil`.
  public let output: Artifact.Kind?
  /// Whether it is ``DigestVerifying``.
  public let verifiesDigests: Bool
  /// Whether there is anything to do for a download.
  public let isNeeded: @Sendable (ProcessingContext) -> Bool
  /// The work.
  public let process: @Sendable (Artifact, ProcessingContext) async throws -> Artifact

  /// Erases a step.
  public init(
    name: String, summary: String = "", input: Artifact.Kind?, output: Artifact.Kind?,
    verifiesDigests: Bool = false, isNeeded: @escaping @Sendable (ProcessingContext) -> Bool = { _ in true },
    process: @escaping @Sendable (Artifact, ProcessingContext) async throws -> Artifact
  ) {
    self.name = name
    self.summary = summary
    self.input = input
    self.output = output
    self.verifiesDigests = verifiesDigests
    self.isNeeded = isNeeded
    self.process = process
  }
}

/// What a step may know and do.
public struct ProcessingContext: Sendable {
  /// The download being worked on.
  public let request: DownloadRequest
  /// A folder for the step's output, on the destination's file system; `nil` with storages without paths.
  public let workspace: String?
  /// Digests that the whole file must have: those of the request, then those the server promised.
  public let digests: [FileDigest]
  /// What this same step noted before the process died; `nil` on a first run.
  public let priorNote: String?
  /// What the step's output has to survive once the step has returned.
  public let durability: Durability
  /// Whether an earlier run ended with its process, and may have published the artifact without a trace in the ledger:
  /// a storage that finds the same bytes under the name takes them for its own.
  public let wasInterrupted: Bool

  private let record: @Sendable (String) async throws -> Void

  /// Makes a context.
  public init(
    request: DownloadRequest, workspace: String?, digests: [FileDigest] = [], priorNote: String? = nil,
    durability: Durability = .process, wasInterrupted: Bool = false,
    note: @escaping @Sendable (String) async throws -> Void = { _ in }
  ) {
    self.request = request
    self.workspace = workspace
    self.digests = digests
    self.priorNote = priorNote
    self.durability = durability
    self.wasInterrupted = wasInterrupted
    self.record = note
  }

  /// Keeps a few words in the ledger before a step does something that cannot be done twice; after a
  /// crash the step finds them in ``priorNote``. Returns once they are durable.
  public func note(_ text: String) async throws { try await record(text) }
}
