public import DownpipeCore
import Foundation

/// Checks that a step keeps the contract of `PostProcessor` or ``/DownpipeCore/UniversalPostProcessor``.
///
/// ```swift
/// try await PostProcessorConformance(
///   Gunzip(), .init(zipped, named: "a.txt.gz", gives: plain), bad: .init(Array("not gzip".utf8), named: "b.gz")
/// ).run()
/// ```
public struct PostProcessorConformance: Sendable {
  /// An input and the expected output.
  public struct Example: Sendable {
    let digests: [FileDigest]
    let make: @Sendable (TemporaryFolder) throws -> Artifact
    let verify: @Sendable (Artifact) throws -> Void
    private(set) var fetch: ProcessingContext.Fetcher?
    private(set) var add: ProcessingContext.Adder?

    /// Creates an example whose input and output are files.
    ///
    /// - Parameters:
    ///   - bytes: The bytes of the input.
    ///   - name: The name of the input.
    ///   - digests: The expected digests of the input: see ``/DownpipeCore/ProcessingContext/digests``.
    ///   - result: The bytes of the output; those of the input when `nil`.
    ///   - resultName: The name of the output; any name when `nil`.
    public init(
      _ bytes: [UInt8], named name: String = "input.bin", digests: [FileDigest] = [], gives result: [UInt8]? = nil,
      named resultName: String? = nil
    ) {
      self.init(digests: digests) { folder in
        Artifact(location: .path(try folder.write(bytes, to: name)), name: name, size: .known(Int64(bytes.count)))
      } verify: { output in
        let found = try output.readBytes()
        try expect(
          sameBytes(found[...], (result ?? bytes)[...]),
          "the output has \(found.count) bytes that differ from the expected ones"
        )
        if let resultName { try expectEqual(output.name, resultName, "the output's name") }
      }
    }

    /// Creates an example with any input and a closure that checks the output.
    ///
    /// - Parameters:
    ///   - digests: The expected digests of the input.
    ///   - make: Creates the input in the folder; each call creates the same input.
    ///   - verify: Throws when the output is wrong.
    public init(
      digests: [FileDigest] = [], making make: @escaping @Sendable (TemporaryFolder) throws -> Artifact,
      verify: @escaping @Sendable (Artifact) throws -> Void
    ) {
      self.digests = digests
      self.make = make
      self.verify = verify
    }

    /// Returns the example with what the step's
    /// ``/DownpipeCore/ProcessingContext/fetch(_:maximumBytes:isNamedByUser:)`` does. By default it throws.
    public func fetching(_ fetch: @escaping ProcessingContext.Fetcher) -> Example {
      var example = self
      example.fetch = fetch
      return example
    }

    /// Returns the example with what the step's ``/DownpipeCore/ProcessingContext/add(_:within:)`` does. By default it
    /// throws.
    public func adding(_ add: @escaping ProcessingContext.Adder) -> Example {
      var example = self
      example.add = add
      return example
    }
  }

  private let stage: any Stage
  private let wrapped: (any Stage)?
  let examples: [Example]
  let bad: Example?
  private let limit: Duration
  private let exclusions: [ConformanceExclusion]

  /// Creates a suite.
  ///
  /// - Parameters:
  ///   - step: The step to check.
  ///   - wrapped: The step that it wraps, to check that the wrapper keeps its abilities; `nil` when it is not a
  ///     wrapper.
  ///   - first: An input that it can process.
  ///   - second: Another one, to check that inputs processed at the same time are not mixed.
  ///   - bad: An input that it must reject; its expected output is ignored.
  ///   - limit: The longest time for a rule.
  ///   - exclusions: Rules that are not checked, each with its reason, such as `input-is-kept` for a step that moves
  ///     its input.
  public init(
    _ step: any Stage, wrapping wrapped: (any Stage)? = nil, _ first: Example, and second: Example? = nil,
    bad: Example? = nil, limit: Duration = .hangLimit, excluding exclusions: [ConformanceExclusion] = []
  ) {
    stage = step
    self.wrapped = wrapped
    examples = [first, second ?? first]
    self.bad = bad
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` with all that are broken; `DownloadError` with
  ///   `.invalidPipeline` when the stage is not one step.
  public func run() async throws {
    let step = try Self.step(of: stage)
    let base = try wrapped.map { try Self.step(of: $0) }
    let report = ConformanceReport("PostProcessorConformance(\(step.name))", excluding: exclusions, limit: limit)
    await checkResults(step, report)
    await checkRepetition(step, report)
    await checkFollower(step, report)
    await checkWrapping(step, base, report)
    await checkFailures(step, report)
    try report.finish()
  }

  private static func step(of stage: any Stage) throws -> PipelineStep {
    var parts = PipelineParts()
    stage.contribute(to: &parts)
    guard let step = parts.steps.first, parts.steps.count == 1 else {
      throw DownloadError(
        .invalidPipeline, "\(stage.name) contributes \(parts.steps.count) steps: check each step separately")
    }
    return step
  }

  private func checkResults(_ step: PipelineStep, _ report: ConformanceReport) async {
    let examples = examples
    let example = examples[0]
    await report.check("gives-what-is-expected", "the output is the expected one") {
      let bench = try Workbench(example)
      try example.verify(try await bench.process(step))
    }
    report.build(on: "gives-what-is-expected")
    await report.check("configuration-is-reused", "one step processes several inputs, also at the same time") {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for example in examples + examples {
          group.addTask {
            let bench = try Workbench(example)
            try example.verify(try await bench.process(step))
          }
        }
        try await group.waitForAll()
      }
    }
    report.build(on: "configuration-is-reused")
    await report.check("form-is-declared", "the output has the form that the step declares") {
      let bench = try Workbench(example)
      try expectEqual(try await bench.process(step).kind, step.output ?? bench.input.kind, "the form")
    }
    await report.check("output-is-in-the-workspace", "the output is in the workspace, or in a folder of the step") {
      let bench = try Workbench(example)
      guard let path = try await bench.process(step).path, path != bench.input.path else { return }
      let folders = [bench.workspace] + step.outputFolders(try bench.context(workspace: bench.workspace))
      try expect(
        folders.contains { path.hasPrefix($0.hasSuffix("/") ? $0 : $0 + "/") }
          && !path.split(separator: "/").contains(".."), "it is at \(path)")
    }
    await report.check(
      "nothing-is-left-behind", "what was written is in the workspace, which goes with the download",
      needs: ["output-is-in-the-workspace"]
    ) {
      let bench = try Workbench(example)
      _ = try await bench.process(step)
      try bench.expectNothingLeft()
    }
    await report.check("output-name-is-safe", "the name of the output is a single path component") {
      let bench = try Workbench(example)
      let name = try await bench.process(step).name
      try expect(!name.isEmpty && name != "." && name != ".." && !name.contains("/"), "it is “\(name)”")
    }
    await report.check("input-is-kept", "the input is unchanged when the step returns, because the engine removes it") {
      let bench = try Workbench(example)
      _ = try await bench.process(step)
      try bench.expectInputKept()
    }
  }

  private func checkRepetition(_ step: PipelineStep, _ report: ConformanceReport) async {
    let examples = examples
    await report.check(
      "runs-again-after-a-crash", "a step that is not recorded as completed can run again with the same input",
      needs: ["input-is-kept"]
    ) {
      let bench = try Workbench(examples[0])
      let first = try await bench.process(step)
      try bench.damage(first)
      try examples[0].verify(try await bench.process(step, again: true))
    }
  }

  private func checkFailures(_ step: PipelineStep, _ report: ConformanceReport) async {
    let example = examples[0]
    await report.check("cancelled-step-throws", "cancelling the task ends the step and keeps the input") {
      let bench = try Workbench(example)
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        _ = try await bench.process(step)
      }
      switch await task.result {
      case .success: throw Deviation("the cancelled step returned without an error")
      case .failure(let error):
        let isCancellation = error is CancellationError || (error as? DownloadError)?.code == .cancelled
        try expect(isCancellation, "instead of CancellationError it threw \(error)")
      }
      try bench.expectInputKept()
    }
    await report.check("bad-input-is-refused", "an input that cannot be processed causes an error", when: bad != nil) {
      guard let bad else { return }
      let bench = try Workbench(bad)
      try await expectAnyError(when: "processing a bad input") { _ = try await bench.process(step) }
      try bench.expectInputKept()
      try bench.expectNothingLeft()
    }
    await report.check("missing-input-is-refused", "a missing input causes an error") {
      let bench = try Workbench(example)
      guard let path = bench.input.path else { return }
      try FileManager.default.removeItem(atPath: path)
      try await expectAnyError(when: "processing a missing input") { _ = try await bench.process(step) }
    }
  }

  /// Any error is accepted: the engine reports other errors than DownloadError with `.processing`.
  func expectAnyError(when what: String, _ body: () async throws -> Void) async throws {
    do { try await body() } catch { return }
    throw Deviation("\(what): nothing was thrown")
  }
}
