public import DownpipeCore
import Foundation

/// Checks that a step keeps the contract of ``DownpipeCore/PostProcessor`` or ``DownpipeCore/UniversalPostProcessor``.
///
/// ```swift
/// try await PostProcessorConformance(
///   Gunzip(), .init(zipped, named: "a.txt.gz", gives: plain), bad: .init(Array("no gzip".utf8), named: "b.gz")
/// ).run()
/// ```
public struct PostProcessorConformance: Sendable {
  /// An input, and what the step is to make of it.
  public struct Example: Sendable {
    let digests: [FileDigest]
    let make: @Sendable (TemporaryFolder) throws -> Artifact
    let verify: @Sendable (Artifact) throws -> Void

    /// A file that becomes another file.
    ///
    /// - Parameters:
    ///   - bytes: the input's bytes.
    ///   - name: its name.
    ///   - digests: what the whole file must have: see ``DownpipeCore/ProcessingContext/digests``.
    ///   - result: the output's bytes; those of the input when left out.
    ///   - resultName: the output's name; any when left out.
    public init(
      _ bytes: [UInt8], named name: String = "input.bin", digests: [FileDigest] = [], gives result: [UInt8]? = nil,
      named resultName: String? = nil
    ) {
      self.init(digests: digests) { folder in
        Artifact(location: .path(try folder.write(bytes, to: name)), name: name, size: .known(Int64(bytes.count)))
      } verify: { output in
        let found = try output.readBytes()
        try expect(
          sameBytes(found[...], (result ?? bytes)[...]), "the output has \(found.count) other bytes than those expected"
        )
        if let resultName { try expectEqual(output.name, resultName, "the output's name") }
      }
    }

    /// Any input, and any check of the output.
    ///
    /// - Parameters:
    ///   - digests: what the whole file must have.
    ///   - make: puts the input into the folder; the same each time it is called.
    ///   - verify: throws when the output is not what it should be.
    public init(
      digests: [FileDigest] = [], making make: @escaping @Sendable (TemporaryFolder) throws -> Artifact,
      verify: @escaping @Sendable (Artifact) throws -> Void
    ) {
      self.digests = digests
      self.make = make
      self.verify = verify
    }
  }

  private let stage: any Stage
  private let examples: [Example]
  private let bad: Example?
  private let limit: Duration
  private let exclusions: [ConformanceExclusion]

  /// Describes what is to be checked.
  ///
  /// - Parameters:
  ///   - step: the step.
  ///   - first: an input that it can process.
  ///   - second: another one, to see that the two do not mix when they are processed at the same time.
  ///   - bad: an input that it must refuse; what it gives does not matter.
  ///   - limit: the longest a rule may take.
  ///   - exclusions: rules that are not checked, such as `input-is-kept` for a step that moves its input.
  public init(
    _ step: any Stage, _ first: Example, and second: Example? = nil, bad: Example? = nil,
    limit: Duration = .seconds(10), excluding exclusions: [ConformanceExclusion] = []
  ) {
    stage = step
    examples = [first, second ?? first]
    self.bad = bad
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` with all that are broken; ``DownpipeCore/DownloadError`` with
  ///   `.invalidPipeline` when the stage is not one step.
  public func run() async throws {
    var parts = PipelineParts()
    stage.contribute(to: &parts)
    guard let step = parts.steps.first, parts.steps.count == 1 else {
      throw DownloadError(
        .invalidPipeline, "\(stage.name) contributes \(parts.steps.count) steps: check each step by itself")
    }
    let report = ConformanceReport("PostProcessorConformance(\(step.name))", excluding: exclusions, limit: limit)
    await checkResults(step, report)
    await checkRepetition(step, report)
    await checkFailures(step, report)
    try report.finish()
  }

  private func checkResults(_ step: PipelineStep, _ report: ConformanceReport) async {
    let examples = examples
    let example = examples[0]
    await report.check("gives-what-is-expected", "the output is what is expected of the input") {
      let bench = try Workbench(example)
      try example.verify(try await bench.process(step))
    }
    report.build(on: "gives-what-is-expected")
    await report.check("configuration-is-reused", "one step works on several inputs, also at the same time") {
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
    await report.check("form-is-declared", "the output is of the form that the step declares") {
      let bench = try Workbench(example)
      try expectEqual(try await bench.process(step).kind, step.output ?? bench.input.kind, "the form")
    }
    await report.check("output-is-in-the-workspace", "what is new lies in the workspace") {
      let bench = try Workbench(example)
      guard let path = try await bench.process(step).path, path != bench.input.path else { return }
      try expect(
        path.hasPrefix(bench.workspace + "/") && !path.split(separator: "/").contains(".."), "it lies at \(path)")
    }
    await report.check("output-name-is-safe", "the output's name is a single path component") {
      let bench = try Workbench(example)
      let name = try await bench.process(step).name
      try expect(!name.isEmpty && name != "." && name != ".." && !name.contains("/"), "it is “\(name)”")
    }
    await report.check("input-is-kept", "the input is as it was when the step returns: the engine removes it") {
      let bench = try Workbench(example)
      _ = try await bench.process(step)
      try bench.expectInputKept()
    }
  }

  private func checkRepetition(_ step: PipelineStep, _ report: ConformanceReport) async {
    let examples = examples
    await report.check(
      "runs-again-after-a-crash", "a step that was not recorded runs again from its input", needs: ["input-is-kept"]
    ) {
      let bench = try Workbench(examples[0])
      let first = try await bench.process(step)
      try bench.damage(first)
      try examples[0].verify(try await bench.process(step, again: true))
    }
  }

  private func checkFailures(_ step: PipelineStep, _ report: ConformanceReport) async {
    let example = examples[0]
    await report.check("cancelled-step-throws", "cancelling the task ends the step, and the input stays") {
      let bench = try Workbench(example)
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        _ = try await bench.process(step)
      }
      switch await task.result {
      case .success: throw Deviation("the cancelled step returned as if nothing had happened")
      case .failure(let error):
        let isCancellation = error is CancellationError || (error as? DownloadError)?.code == .cancelled
        try expect(isCancellation, "instead of CancellationError it threw \(error)")
      }
      try bench.expectInputKept()
    }
    await report.check("bad-input-is-refused", "an input that cannot be processed is an error", when: bad != nil) {
      guard let bad else { return }
      let bench = try Workbench(bad)
      try await expectAnyError(when: "processing a bad input") { _ = try await bench.process(step) }
      try bench.expectInputKept()
    }
    await report.check("missing-input-is-refused", "an input that is not there is an error") {
      let bench = try Workbench(example)
      guard let path = bench.input.path else { return }
      try FileManager.default.removeItem(atPath: path)
      try await expectAnyError(when: "processing an input that is not there") { _ = try await bench.process(step) }
    }
  }

  /// Any error: what is no DownloadError is reported with `.processing`.
  private func expectAnyError(when what: String, _ body: () async throws -> Void) async throws {
    do { try await body() } catch { return }
    throw Deviation("\(what): nothing was thrown")
  }
}

/// One input with its workspace, as the engine would give them to a step.
private final class Workbench: Sendable {
  let input: Artifact
  let workspace: String
  private let folder: TemporaryFolder
  private let digests: [FileDigest]
  private let original: [String: [UInt8]]
  private let notes = Watched<[String]>([])

  init(_ example: PostProcessorConformance.Example) throws {
    folder = try TemporaryFolder()
    digests = example.digests
    workspace = folder.path("workspace")
    try FileManager.default.createDirectory(atPath: workspace, withIntermediateDirectories: false)
    input = try example.make(folder)
    original = try Self.files(input)
  }

  func process(_ step: PipelineStep, again: Bool = false) async throws -> Artifact {
    let notes = notes
    let context = ProcessingContext(
      request: try DownloadRequest("https://example.org/\(DownloadID())"), workspace: workspace, digests: digests,
      priorNote: again ? notes.value.last : nil, note: { note in notes.update { $0.append(note) } })
    return try await step.process(input, context)
  }

  func expectInputKept() throws {
    let now = try? Self.files(input)
    try expect(now == original, now == nil ? "the input is gone" : "the input was changed")
  }

  /// Leaves half of an output behind, as a crash does.
  func damage(_ output: Artifact) throws {
    guard output.kind == .file, let path = output.path, path != input.path, path.hasPrefix(workspace + "/") else {
      return
    }
    let bytes = try output.readBytes()
    try Data(bytes.prefix(bytes.count / 2)).write(to: URL(filePath: path, directoryHint: .notDirectory))
  }

  private static func files(_ artifact: Artifact) throws -> [String: [UInt8]] {
    guard artifact.kind == .directory, let root = artifact.path else { return ["": try artifact.readBytes()] }
    var files: [String: [UInt8]] = [:]
    for name in try FileManager.default.subpathsOfDirectory(atPath: root) {
      files[name] = (try? Artifact(location: .path("\(root)/\(name)"), name: name).readBytes()) ?? []
    }
    return files
  }
}
