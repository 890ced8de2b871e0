import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct PostProcessorConformanceTests {
  private static let first = DownloadFixtures.pattern(size: 5000, seed: 1)
  private static let second = DownloadFixtures.pattern(size: 3000, seed: 2)

  private static func reverse(_ bytes: [UInt8]) throws -> [UInt8] {
    guard bytes.count > 3 else { throw DownloadError(.processing, "too short to be reversed") }
    return bytes.reversed()
  }

  private static func run(_ step: any Stage, named name: String? = "a.bin") async throws {
    try await PostProcessorConformance(
      step, .init(first, named: "a.bin", gives: first.reversed(), named: name),
      and: .init(second, named: "b.bin", gives: second.reversed()), bad: .init([1, 2], named: "c.bin")
    ).run()
  }

  @Test func aRightStepPasses() async throws {
    try await Self.run(FakePostProcessor.bytes(name: "Reverse", Self.reverse))
  }

  @Test func aStepThatOnlyLooksPasses() async throws {
    struct Look: UniversalPostProcessor {
      func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
        try Task.checkCancellation()
        let path = artifact.path ?? ""
        guard FileManager.default.fileExists(atPath: path) else {
          throw DownloadError(.processing, "there is no \(path)")
        }
        return artifact
      }
    }
    try await PostProcessorConformance(Look(), .init(Self.first)).run()
  }

  @Test func aStepThatMakesAFolderPasses() async throws {
    let step = FakePostProcessor<File, Directory>(name: "Unpack") { file, context in
      try Task.checkCancellation()
      let path = (context.workspace ?? "") + "/unpacked"
      do {
        let bytes = try Data(contentsOf: URL(filePath: file.path ?? ""))
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try bytes.write(to: URL(filePath: path + "/file"))
      } catch {
        throw DownloadError(error, as: .processing)
      }
      return Directory(path: path, name: "unpacked")
    }
    let example = PostProcessorConformance.Example { folder in
      Artifact(location: .path(try folder.write(Self.first, to: "in.tar")), name: "in.tar")
    } verify: { output in
      let bytes = [UInt8](try Data(contentsOf: URL(filePath: (output.path ?? "") + "/file")))
      if bytes != Self.first { throw DownloadError(.processing, "other bytes") }
    }
    try await PostProcessorConformance(step, example).run()
  }

  @Test("an output may be in a folder that the step declares")
  func declaredFolders() async throws {
    struct Moving: PostProcessor {
      let folder: TemporaryFolder
      let declares: Bool
      func outputFolders(in context: ProcessingContext) -> [String] { declares ? [folder.path] : [] }
      func process(_ file: File, in context: ProcessingContext) async throws -> File {
        let made = try await PostProcessorConformanceTests.right(file, context)
        let target = folder.path("\(DownloadID())")
        try FileManager.default.moveItem(atPath: made.path ?? "", toPath: target)
        return File(path: target, name: file.name)
      }
    }
    let folder = try TemporaryFolder()
    let right = Moving(folder: folder, declares: true)
    #expect(try await brokenRules { try await Self.run(right) } == [])
    let wrong = Moving(folder: folder, declares: false)
    #expect(try await brokenRules { try await Self.run(wrong) } == ["output-is-in-the-workspace"])
  }

  @Test func whatIsNotOneStepIsAnError() async throws {
    let suite = PostProcessorConformance(FakeGate(), .init(Self.first))
    let error = try await #require(throws: DownloadError.self) { try await suite.run() }
    #expect(error.code == .invalidPipeline)
  }

  private final class Ignoring: TransferFollower {
    func take(_ bytes: RawSpan) {}
  }

  @Test func aFollowerThatChangesTheResultIsFound() async throws {
    let step = FakePostProcessor<File, File>(name: "Reverse", follower: { _ in Ignoring() }) { file, context in
      try await context.follower == nil ? Self.right(file, context) : file
    }
    #expect(try await brokenRules { try await Self.run(step) } == ["follower-changes-nothing"])
  }

  /// Keeps what it takes in a file in the workspace.
  private final class Writing: TransferFollower {
    enum Flaw: String, CaseIterable, Sendable, CustomTestStringConvertible {
      case none = ""
      case leavesItsFile = "discarded-follower-leaves-nothing"
      case removesTheOutput = "discarding-keeps-the-output"
      case appendsToWhatWasLeft = "killed-follower-is-replaced"
      case losesBytes = "follower-changes-nothing"
      var testDescription: String { rawValue }
    }

    let workspace: String
    private let flaw: Flaw
    private let hasBegun = Watched(false)
    var path: String { workspace + "/following" }
    var output: String { workspace + "/output" }

    init(in workspace: String, _ flaw: Flaw) {
      self.workspace = workspace
      self.flaw = flaw
    }

    func take(_ bytes: RawSpan) throws {
      let isFirst = hasBegun.update { hasBegun in
        defer { hasBegun = true }
        return !hasBegun
      }
      let keeps = flaw == .appendsToWhatWasLeft && FileManager.default.fileExists(atPath: path)
      if isFirst, !keeps { try Data().write(to: URL(filePath: path)) }
      if flaw == .losesBytes, !isFirst { return }
      let handle = try FileHandle(forWritingTo: URL(filePath: path))
      defer { try? handle.close() }
      try handle.seekToEnd()
      try handle.write(contentsOf: bytes.withUnsafeBytes { Data($0) })
    }

    func discard() {
      if flaw == .removesTheOutput { try? FileManager.default.removeItem(atPath: output) }
      if flaw != .leavesItsFile { try? FileManager.default.removeItem(atPath: path) }
    }
  }

  @Test("a follower that writes is checked", arguments: Writing.Flaw.allCases)
  private func aFollowerThatWrites(_ flaw: Writing.Flaw) async throws {
    let step = FakePostProcessor<File, File>(
      name: "Reverse", follower: { context in context.workspace.map { Writing(in: $0, flaw) } }, followerWrites: true
    ) { input, context in
      guard let follower = context.follower as? Writing else {
        if let left = context.workspace.map({ $0 + "/following" }) { try? FileManager.default.removeItem(atPath: left) }
        return try await Self.right(input, context)
      }
      let bytes = [UInt8](try Data(contentsOf: Self.file(follower.path)))
      try Data(try Self.reverse(bytes)).write(to: Self.file(follower.output))
      try FileManager.default.removeItem(atPath: follower.path)
      return File(path: follower.output, name: input.name)
    }
    let broken = try await brokenRules { try await Self.run(step) }
    #expect(broken == (flaw == .none ? [] : [flaw.rawValue]))
  }

  @Test("a wrapper that does not forward an ability is found")
  func aWrapperThatLosesSomethingIsFound() async throws {
    struct Wrapper: PostProcessor {
      let base: FakePostProcessor<File, File>
      func process(_ input: File, in context: ProcessingContext) async throws -> File {
        try await base.process(input, in: context)
      }
    }
    let base = FakePostProcessor<File, File>(name: "Reverse", follower: { _ in Ignoring() }, Self.right)
    func broken(_ step: any Stage) async throws -> Set<String> {
      try await brokenRules {
        try await PostProcessorConformance(
          step, wrapping: base, .init(Self.first, named: "a.bin", gives: Self.first.reversed())
        ).run()
      }
    }
    #expect(try await broken(Wrapper(base: base)) == ["wrapper-loses-nothing"])
    #expect(try await broken(base.when { _ in true }).isEmpty)
  }

  typealias Work = @Sendable (File, ProcessingContext) async throws -> File

  struct Flaw: Sendable, CustomTestStringConvertible {
    let rule: String
    /// The expected name of the output.
    var name: String? = "a.bin"
    let work: @Sendable () -> Work
    var testDescription: String { rule }
  }

  /// The work of a correct step.
  fileprivate static let right: Work = { file, context in
    try await FakePostProcessor.bytes(name: "Reverse", reverse).process(file, in: context)
  }

  private static func file(_ path: String) -> URL { URL(filePath: path, directoryHint: .notDirectory) }

  private static let flaws: [Flaw] = [
    Flaw(rule: "gives-what-is-expected") { { file, _ in file } },
    Flaw(rule: "gives-what-is-expected") {
      { file, context in
        var output = try await right(file, context).artifact
        output.name = "other"
        return File(output)
      }
    },
    Flaw(rule: "form-is-declared") {
      { file, context in
        var output = try await right(file, context).artifact
        output.kind = .directory
        return File(output)
      }
    },
    Flaw(rule: "output-is-in-the-workspace") {
      { file, context in
        var output = try await right(file, context).artifact
        let beside = (file.path ?? "") + ".out"
        try? FileManager.default.removeItem(atPath: beside)
        try FileManager.default.moveItem(atPath: output.path ?? "", toPath: beside)
        output.location = .path(beside)
        return File(output)
      }
    },
    Flaw(rule: "nothing-is-left-behind") {
      { file, context in
        let output = try await right(file, context)
        try Data([1]).write(to: Self.file((file.path ?? "") + ".log"))
        return output
      }
    },
    Flaw(rule: "output-name-is-safe", name: nil) {
      { file, context in
        var output = try await right(file, context).artifact
        output.name = "../../" + output.name
        return File(output)
      }
    },
    Flaw(rule: "input-is-kept") {
      { file, context in
        let output = try await right(file, context)
        try FileManager.default.removeItem(atPath: file.path ?? "")
        return output
      }
    },
    Flaw(rule: "input-is-kept") {
      { file, context in
        let output = try await right(file, context)
        try Data([0]).write(to: Self.file(file.path ?? ""))
        return output
      }
    },
    Flaw(rule: "configuration-is-reused") {
      // The second call writes to the folder of the first.
      let folder = Watched<String?>(nil)
      return { file, context in
        let used = folder.update { folder in
          folder = folder ?? context.workspace
          return folder
        }
        return try await right(file, ProcessingContext(request: context.request, workspace: used))
      }
    },
    Flaw(rule: "runs-again-after-a-crash") {
      { file, context in
        let target = (context.workspace ?? "") + "/out"
        if !FileManager.default.fileExists(atPath: target) {
          let output = try await right(file, context)
          try FileManager.default.moveItem(atPath: output.path ?? "", toPath: target)
        }
        return File(path: target, name: file.name)
      }
    },
    Flaw(rule: "cancelled-step-throws") {
      { file, context in try await Task { try await right(file, context) }.value }
    },
    Flaw(rule: "cancelled-step-throws") {
      { file, context in
        if Task.isCancelled { try FileManager.default.removeItem(atPath: file.path ?? "") }
        return try await right(file, context)
      }
    },
    Flaw(rule: "bad-input-is-refused") {
      { file, context in
        if let size = file.artifact.size.bytes, size < 4 { return file }
        return try await right(file, context)
      }
    },
    Flaw(rule: "missing-input-is-refused") {
      { file, context in
        guard FileManager.default.fileExists(atPath: file.path ?? "") else { return file }
        return try await right(file, context)
      }
    },
  ]

  @Test(arguments: flaws)
  func aFlawIsFound(_ flaw: Flaw) async throws {
    let broken = try await brokenRules { try await Self.run(FakePostProcessor(flaw.work()), named: flaw.name) }
    #expect(broken == [flaw.rule])
  }
}
