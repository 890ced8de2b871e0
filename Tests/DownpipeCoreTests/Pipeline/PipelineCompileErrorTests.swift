import Foundation
import HangLimit
import Testing

/// Invalid pipelines, compiled with the real compiler, which must reject them with a message that says what is missing.
@Suite(.endsHangs)
struct PipelineCompileErrorTests {
  struct Snippet: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// The text that the error must contain; `nil` for a snippet that compiles.
    let message: String?
    let code: String

    init(_ title: String, _ message: String?, _ code: String) {
      testDescription = title
      self.message = message
      self.code = code
    }

    /// Creates a snippet from the stages of a pipeline.
    static func pipeline(_ title: String, _ message: String?, _ stages: String) -> Snippet {
      Snippet(title, message, "private func snippet(_ yes: Bool) { _ = Pipeline { \(stages) } }")
    }
  }

  static let noSource = "this pipeline has no source: add one, such as HTTPSource(); one inside an `if` without `else`"
  static let noStorage =
    "this pipeline has no storage: add one, such as FileStore(\"~/Downloads\"); one inside an `if` without `else`"
  static let neither = "this pipeline has no source and no storage: add both"
  static func misfit(_ first: String, _ next: String) -> String {
    "'StepsThatDoNotFit<\(first), \(next)>' conform to 'StepsFromFile'"
  }
  static let twoStorages = "this pipeline has two storages, and a download has one place: keep one of them"
  static let firstStep = "the first step of a pipeline takes a File"
  static let optionalForm = "steps inside an `if` without `else` must return the form that they take"
  static let repeatedForm = "steps inside a `for` must return the form that they take"

  static let snippets: [Snippet] = [
    .pipeline("no source", noSource, "NamedStorage(); NamedGate()"),
    .pipeline("no source, with steps", noSource, "NamedStorage(); Gunzip()"),
    .pipeline("no storage", noStorage, "NamedSource(); NamedLimit()"),
    .pipeline("no storage, with steps", noStorage, "NamedSource(); Untar(); Prune()"),
    .pipeline("neither", neither, "NamedGate(); NamedLimit()"),
    .pipeline("an empty pipeline", neither, ""),
    .pipeline(
      "untar, then gunzip", misfit("Untar", "Gunzip"), "NamedSource(); NamedStorage(); Untar(); Gunzip()"),
    .pipeline(
      "a misfit before other stages", misfit("Untar", "Gunzip"),
      "NamedGate(); Gunzip(); Untar(); Gunzip(); NamedStep(); Untar(); NamedStorage(); Prune(); NamedSource()"),
    .pipeline(
      "a misfit with an optional step", misfit("Untar", "Gunzip"),
      "NamedSource(); NamedStorage(); Untar(); if yes { Gunzip() }"),
    .pipeline(
      "a misfit with steps in branches", misfit("Prune", "Gunzip"),
      "NamedSource(); NamedStorage(); Untar(); Prune(); if yes { Gunzip() } else { Gunzip(); Gunzip() }"),
    .pipeline("two storages", twoStorages, "NamedSource(); NamedStorage(); NamedStorage()"),
    .pipeline(
      "two storages, with stages and steps between", twoStorages,
      "NamedStorage(); Gunzip(); NamedGate(); NamedSource(); Untar(); NamedStorage(); Prune(); NamedLimit()"),
    .pipeline(
      "two storages, the second in branches", twoStorages,
      "NamedSource(); NamedStorage(); if yes { NamedStorage() } else { NamedStorage() }"),
    .pipeline(
      "two storages and no source", "this pipeline has two storages and no source", "NamedStorage(); NamedStorage()"),
    .pipeline(
      "a misfit with universal steps between", misfit("Untar", "Gunzip"),
      "NamedSource(); NamedStorage(); Untar(); NamedStep(); Gunzip()"),
    .pipeline("the first step takes a directory", firstStep, "NamedSource(); NamedStorage(); Prune()"),
    .pipeline("an optional step changes the form", optionalForm, "NamedSource(); NamedStorage(); if yes { Untar() }"),
    .pipeline(
      "a repeated step changes the form", repeatedForm, "NamedSource(); NamedStorage(); for _ in 0..<2 { Untar() }"),
    .pipeline("a source that may be left out", noSource, "NamedStorage(); if yes { NamedSource() }"),
    .pipeline("a storage that may be left out", noStorage, "NamedSource(); if yes { NamedStorage() }"),
    .pipeline("a source in one branch", noSource, "NamedStorage(); if yes { NamedSource() } else { NamedGate() }"),
    .pipeline("a storage in one branch", noStorage, "NamedSource(); if yes { NamedStorage() } else { NamedGate() }"),
    .pipeline(
      "a source in two cases of three", noSource,
      """
      NamedStorage()
      switch (yes, yes) {
      case (true, true): NamedSource()
      case (true, false): NamedSource()
      default: NamedGate()
      }
      """),
    .pipeline("a source in a loop", noSource, "NamedStorage(); for _ in 0..<2 { NamedSource() }"),
    .pipeline(
      "branches of different forms", "Steps<File, Directory>",
      "NamedSource(); NamedStorage(); if yes { Untar() } else { Gunzip() }"),
    .pipeline(
      "an expression that is not a stage", "no exact matches in call to static method 'buildExpression'",
      "NamedSource(); NamedStorage(); 42"),
    .pipeline(
      "a conditional step that changes the form",
      "a step that changes the form (File or Directory) cannot be conditional",
      "NamedSource(); NamedStorage(); Untar().when { _ in yes }"),
    .pipeline(
      "a conditional step that does not fit", misfit("Untar", "ConditionalStep<Gunzip>"),
      "NamedSource(); NamedStorage(); Untar(); Gunzip().when { _ in yes }"),
    Snippet(
      "a source that is never started", "does not conform to protocol 'Source'",
      """
      private struct Idle: Source { func accepts(_ url: URL) -> Bool { true } }
      """),
    Snippet(
      "an admission policy that does not say what it admits", "does not conform to protocol 'AdmissionPolicy'",
      """
      private struct Limit: AdmissionPolicy { let most = 3 }
      """),
    Snippet(
      "a stage of no kind",
      "conform to the protocol of a kind of stage, not to Stage alone: Source, Storage, PostProcessor",
      """
      private struct Limit: Stage { let most = 3 }
      private func snippet() { _ = Pipeline { NamedSource(); NamedStorage(); Limit() } }
      """),
    Snippet(
      "a group with two storages", "TwoStorages",
      """
      private struct Twice: StageGroup {
        var body: some PipelineFragment<HasSource, HasStorage, NoSteps> { NamedSource(); NamedStorage(); NamedStorage() }
      }
      """),
    Snippet(
      "a group that hides its source", "HasSource",
      """
      private struct Hidden: StageGroup { var body: some Stage { NamedSource(); NamedGate() } }
      """),
    Snippet(
      "a group that hides its steps", "Steps<File, Directory>",
      """
      private struct Hidden: StageGroup { var body: some Stage { NamedGate(); Untar() } }
      """),
    Snippet(
      "a group without the storage that it declares", "HasStorage",
      """
      private struct Promise: StageGroup {
        var body: some PipelineFragment<HasSource, HasStorage, NoSteps> { NamedSource() }
      }
      """),
    Snippet(
      "a group whose steps do not fit what follows", misfit("Unpack", "Gunzip"),
      """
      private struct Unpack: StageGroup {
        var body: some PipelineFragment<NoSource, NoStorage, Steps<File, Directory>> { Gunzip(); Untar() }
      }
      private func snippet() { _ = Pipeline { NamedSource(); NamedStorage(); Unpack(); Gunzip() } }
      """),

    Snippet(
      "valid: a type that is two kinds of stage", nil,
      """
      private struct Watch: Gate, Observer {
        func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {}
        func observe(_ events: AsyncStream<DownloadEvent>) async {}
        func contribute(to parts: inout PipelineParts) { parts.gates.append(self); parts.observers.append(self) }
      }
      private func snippet() { _ = Pipeline { NamedSource(); NamedStorage(); Watch() } }
      """),
    .pipeline(
      "valid: a storage in each branch", nil, "NamedSource(); if yes { NamedStorage() } else { NamedStorage() }"),
    .pipeline("valid: source and storage only", nil, "NamedSource(); NamedStorage()"),
    .pipeline(
      "valid: all kinds of stages and statements", nil,
      """
      NamedSource(); NamedPolicy(); NamedLimit(); NamedGate(); NamedInterceptor(); Retry(.never); NamedStorage(); NamedLedger()
      NamedStep(); NamedStep().when { _ in yes }; Gunzip().when { _ in yes }; Untar(); Prune(); NamedObserver()
      """),
    .pipeline(
      "valid: branches", nil,
      """
      if yes { NamedSource(); NamedStorage() } else { NamedStorage(); NamedGate(); NamedSource() }
      if yes { Gunzip() }
      for _ in 0..<2 { NamedGate() }
      """),
    Snippet(
      "valid: a group with source, storage and steps", nil,
      """
      private struct Whole: StageGroup {
        var body: some PipelineFragment<HasSource, HasStorage, Steps<File, Directory>> {
          NamedSource(); NamedStorage(); Untar()
        }
      }
      private func snippet() { _ = Pipeline { Whole(); Prune() } }
      """),
  ]

  @Test(arguments: snippets.indices)
  func theCompilerSaysWhatIsMissing(index: Int) async throws {
    let errors = try await Self.diagnostics.value[index, default: []]
    let snippet = Self.snippets[index]
    if let message = snippet.message {
      #expect(errors.contains { $0.contains(message) }, "\(snippet.testDescription): \(errors)")
    } else {
      #expect(errors.isEmpty, "\(snippet.testDescription): \(errors)")
    }
  }

  // MARK: The compiler

  private struct CannotCompile: Error, CustomStringConvertible {
    let description: String
  }

  /// The errors in each snippet. The compiler runs once for all snippets, each in its own file.
  private static let diagnostics = Task { try await compile() }

  private static func compile() async throws -> [Int: [String]] {
    let products = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    // On Apple platforms the executable is inside the test bundle.
    let folders = sequence(first: products) { $0.path.count > 1 ? $0.deletingLastPathComponent() : nil }.prefix(5)
    guard
      let modules = folders.map({ $0.appending(path: "Modules") }).first(where: {
        FileManager.default.fileExists(atPath: $0.appending(path: "DownpipeCore.swiftmodule").path)
      })
    else {
      throw CannotCompile(
        description: "Modules/DownpipeCore.swiftmodule is not next to the tests (\(products.path)): run `swift build`")
    }
    let stages = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "NamedStages.swift")
    guard FileManager.default.fileExists(atPath: stages.path) else {
      throw CannotCompile(description: "\(stages.path) does not exist: run the tests next to their sources")
    }

    let folder = FileManager.default.temporaryDirectory.appending(path: "downpipe-snippets-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    for (index, snippet) in snippets.enumerated() {
      let text = "import DownpipeCore\nimport Foundation\n" + snippet.code + "\n"
      try Data(text.utf8).write(to: folder.appending(path: "snippet-\(index).swift"))
    }
    let output = try await swiftc(
      [
        "-typecheck", "-whole-module-optimization", "-parse-as-library", "-module-name", "Snippets", "-swift-version",
        "6",
      ]
        + ["-diagnostic-style", "llvm", "-module-cache-path", folder.appending(path: "cache").path]
        + ["-I", modules.path, stages.path]
        + snippets.indices.map { folder.appending(path: "snippet-\($0).swift").path },
      in: folder)
    return try parse(output)
  }

  private static func swiftc(_ arguments: [String], in folder: URL) async throws -> String {
    let file = folder.appending(path: "output")
    try Data().write(to: file)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["swiftc"] + arguments
    process.standardOutput = FileHandle.nullDevice
    process.standardError = try FileHandle(forWritingTo: file)
    let status = try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Int32, any Error>) in
      process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do { try process.run() } catch {
        process.terminationHandler = nil
        continuation.resume(throwing: error)
      }
    }
    let output = String(decoding: try Data(contentsOf: file), as: UTF8.self)
    // Status 1 means invalid snippets; any other status is a failure of the compiler itself.
    guard status == 1 else { throw CannotCompile(description: "`swiftc` ended with status \(status): \(output)") }
    return output
  }

  /// Collects lines such as `…/snippet-7.swift:2:5: error: …` by snippet. Errors elsewhere are thrown, because they
  /// hide others.
  private static func parse(_ output: String) throws -> [Int: [String]] {
    var errors: [Int: [String]] = [:]
    for line in output.split(separator: "\n") {
      if let match = line.firstMatch(of: /snippet-(\d+)\.swift:\d+:\d+: (?:error|note): (.*)/), let index = Int(match.1)
      {
        errors[index, default: []].append(String(match.2))
      } else if line.contains(": error: ") || line.hasPrefix("error: ") {
        throw CannotCompile(description: output)
      }
    }
    return errors
  }
}
