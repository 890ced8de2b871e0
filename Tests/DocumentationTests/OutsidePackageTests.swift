import Foundation
import Testing

/// Builds a package that depends on this one by its path. It compiles all dependencies again, which takes minutes, and
/// runs only when `DOWNPIPE_OUTSIDE` is set: see `.ci/long outside`. The build stays in `.build/outside`.
@Suite(
  .serialized, .timeLimit(.minutes(60)), .enabled(if: ProcessInfo.processInfo.environment["DOWNPIPE_OUTSIDE"] != nil))
struct OutsidePackageTests {
  private let folder = Compiler.package.appending(path: ".build/outside/reader")
  private let build = Compiler.package.appending(path: ".build/outside/build")

  @Test("the README's and the documentation's examples compile unchanged, with the default traits and with none")
  func examplesCompile() throws {
    for hasTraits in [true, false] {
      try write(withTraits: hasTraits)
      let ending = try Compiler.run(
        ["swift", "build", "--build-tests", "--scratch-path", build.path(percentEncoded: false)], in: folder)
      #expect(ending.status == 0, "with\(hasTraits ? "" : "out") traits:\n\(Self.errors(in: ending.output))")
    }
  }

  private func write(withTraits: Bool) throws {
    try? FileManager.default.removeItem(at: folder)
    let identity = Compiler.package.lastPathComponent.lowercased()
    let products = [
      "Downpipe", "DownpipeTesting", "DownpipeAppleResumeData", "DownpipeURLSession", "DownpipeBackgroundURLSession",
    ]
    let dependencies = products.map { ".product(name: \"\($0)\", package: \"\(identity)\")" }.joined(separator: ", ")
    let root = Compiler.package.path(percentEncoded: false)
    try write(
      """
      // swift-tools-version: 6.2
      import PackageDescription
      let package = Package(
        name: "reader", platforms: [.macOS(.v15), .iOS(.v18)],
        dependencies: [.package(path: "\(root)"\(withTraits ? "" : ", traits: []"))],
        targets: [
          \(withTraits ? ".executableTarget(name: \"Readme\", dependencies: [\(dependencies)])," : "")
          .testTarget(name: "ExamplesTests", dependencies: [\(dependencies)]),
        ])
      """, to: "Package.swift")
    let resolved = try String(contentsOf: Compiler.package.appending(path: "Package.resolved"), encoding: .utf8)
    try write(resolved, to: "Package.resolved")
    var harness = ExampleHarness.documentation
    let missing = [
      "DownpipeService", "DownpipeLogging", "DownpipeMetrics", "DownpipeTracing", "DownpipeCommand", "DownpipeArchive",
      "DownpipeSignature", "DownpipeMetalink", "DownpipePostgres", "DownpipeS3", "DownpipeRPC", "Logging",
      "ServiceLifecycle",
    ]
    harness.modules.removeAll { missing.contains($0) }
    harness.surroundings.removeAll { ["Logger", "MetalinkDocument"].contains($0.type) }
    let excluded = [
      "Service", "Logging", "Metrics", "Tracing", "Command", "Archive", "Signature", "Metalink", "Postgres", "S3",
    ].map {
      "Plugins/\($0)/"
    }
    // These are none of the default traits.
    let optIn = ["AsyncHTTPClient", "Command", "Archive", "Signature", "Postgres"]
    let missingTexts = ExampleTests.optional.filter { optIn.contains($0.key) || !withTraits }.flatMap(\.value)
    let examples = try ExampleTests.examples(without: missingTexts).filter { example in
      !excluded.contains { example.path.hasPrefix($0) }
    }
    try write(harness.source(of: examples), to: "Tests/ExamplesTests/Examples.swift")
    // The first example is a program as it is.
    let first = try #require(examples.first { $0.path == "README.md" })
    if withTraits { try write(first.code.joined(separator: "\n"), to: "Sources/Readme/main.swift") }
  }

  private func write(_ text: String, to path: String) throws {
    let file = folder.appending(path: path)
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try text.write(to: file, atomically: true, encoding: .utf8)
  }

  /// The errors in the output of a build, and its last lines.
  private static func errors(in output: String) -> String {
    let lines = output.split(separator: "\n")
    return (lines.filter { $0.contains("error:") }.prefix(20) + lines.suffix(5)).joined(separator: "\n")
  }
}
