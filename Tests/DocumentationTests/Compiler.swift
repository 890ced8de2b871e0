import ChildPipe
import Foundation

/// Runs the compiler, or another tool of the toolchain.
enum Compiler {
  /// The exit status of a tool and its output.
  struct Ending: Sendable {
    let status: Int32
    let output: String
  }

  /// The folder of this package.
  static let package = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// Checks the types of a file against the modules that were built beside these tests.
  static func check(_ source: String) throws -> Ending {
    let folder = FileManager.default.temporaryDirectory.appending(path: "downpipe-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appending(path: "Examples.swift")
    try source.write(to: file, atomically: true, encoding: .utf8)
    let products = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
    let folders = [products.appending(path: "Modules")] + moduleMaps(products)
    return try run(
      ["swiftc", "-typecheck", "-swift-version", "6", "-module-name", "Examples", "-suppress-warnings"]
        + folders.flatMap { ["-I", $0.path(percentEncoded: false)] } + systemHeaders + macros
        + [file.path(percentEncoded: false)])
  }

  /// Headers that are in no folder of the compiler.
  private static var systemHeaders: [String] {
    guard let ending = try? run(["pkg-config", "--cflags-only-I", "libpq"]), ending.status == 0 else { return [] }
    return ending.output.split(whereSeparator: \.isWhitespace).map(String.init)
  }

  /// The plugin path for the macros of Swift Testing, which the package manager passes to the compiler.
  private static var macros: [String] {
    guard let tool = try? run(["sh", "-c", "readlink -f \"$(command -v swiftc)\""]).output else { return [] }
    let plugins = URL(filePath: tool.trimmingCharacters(in: .whitespacesAndNewlines)).deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "lib/swift/host/plugins/testing").path(percentEncoded: false)
    return FileManager.default.fileExists(atPath: plugins) ? ["-plugin-path", plugins] : []
  }

  /// The folders of the C modules that the modules beside these tests import.
  private static func moduleMaps(_ products: URL) -> [URL] {
    let files = FileManager.default
    func inner(_ folder: URL) -> [URL] {
      ((try? files.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []).sorted { $0.path < $1.path }
    }
    let checkouts = inner(package.appending(path: ".build/checkouts"))
    let targets = ([package] + checkouts).flatMap { inner($0.appending(path: "Sources")) }
    let built = inner(products).filter { $0.pathExtension == "build" }
    return (targets + targets.map { $0.appending(path: "include") } + built).filter {
      files.fileExists(atPath: $0.appending(path: "module.modulemap").path(percentEncoded: false))
    }
  }

  /// Runs a tool to its end.
  static func run(_ arguments: [String], in folder: URL? = nil) throws -> Ending {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = arguments
    process.currentDirectoryURL = folder
    process.standardInput = FileHandle.nullDevice
    let pipe = try ChildPipe()
    try process.run(output: pipe, errors: pipe)
    // Read before waiting: a full pipe would stop the tool.
    let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return Ending(status: process.terminationStatus, output: String(decoding: output, as: UTF8.self))
  }
}
