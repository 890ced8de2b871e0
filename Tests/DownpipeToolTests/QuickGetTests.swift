import ArgumentParser
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

/// Arguments that are read without the parser mean the same as with it.
@Suite(.endsHangs)
struct QuickGetTests {
  @Test(
    "The settings are those of the parser",
    arguments: [
      ["http://a/1"], ["get", "http://a/1"], ["get", "http://a/1", "http://a/2", "-q"], ["http://a/1", "--quiet"],
      ["http://a/1", "--json"], ["--json", "-q", "http://a/1"], ["get", "-j", "16", "http://a/1"],
      ["get", "http://a/1", "--jobs", "7"], ["get", "a/1", "http://a/2"], ["http://a/1", "http://a/1"],
      ["get", "--input-file", "LIST"], ["-i", "LIST", "-j", "3"], ["-i", "LIST", "http://a/1", "--json"],
    ])
  func settings(_ arguments: [String]) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "quick-\(UUID())", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let list = folder.appending(path: "list").path(percentEncoded: false)
    try Data("http://a/3\n".utf8).write(to: URL(filePath: list))
    let directory = folder.path(percentEncoded: false)
    let arguments = arguments.map { $0 == "LIST" ? list : $0 } + ["-d", directory]

    let quick = try #require(QuickGet(arguments)).prepared()
    let command = try #require(try RootCommand.parseAsRoot(arguments) as? GetCommand)
    let parsed = try await command.prepared()
    #expect(quick.settings == parsed.settings)
    #expect(quick.output == parsed.output)
    let (plan, expected) = (quick.plan, parsed.plan)
    #expect(plan.urls == expected.urls && plan.inputFile == expected.inputFile && plan.outputName == nil)
    #expect((quick.list == nil) == (parsed.list == nil))
    #expect(plan.headers == expected.headers && plan.ignoredFields == expected.ignoredFields)
    #expect(plan.mirrors == expected.mirrors && plan.digest == nil && expected.digest == nil)
    #expect(plan.steps == expected.steps && plan.priority == expected.priority && plan.refresh == expected.refresh)
    #expect(plan.logsIn == expected.logsIn && plan.isMetalink == expected.isMetalink)
    #expect(plan.isUntrusted == expected.isUntrusted && plan.checksums == nil && expected.checksums == nil)
  }

  @Test(
    "Everything else is left to the parser",
    arguments: [
      [], ["get"], ["--help"], ["get", "--help"], ["list"], ["help", "get"], ["--version"], ["a/1"], ["-q"],
      ["get", "-j", "0", "http://a/1"], ["get", "-j", "x", "http://a/1"], ["get", "-j"], ["get", "-i", "-"],
      ["get", "-j", "10001", "http://a/1"], ["-q", "get", "http://a/1"], ["get", "http://a/1", "--", "-q"],
      ["get", "http://a/1", "-o", "name"], ["get", "http://a/1", "--output=name"], ["get", "--jobs=3", "http://a/1"],
      ["get", "-d", "a", "-d", "b", "http://a/1"], ["get", "-qj3", "http://a/1"], ["get", "-d", "", "http://a/1"],
      ["http://a/1", "list"], ["--generate-completion-script", "bash"], ["get", "http://a/1", "--dry-run"],
    ])
  func others(_ arguments: [String]) {
    #expect(QuickGet(arguments).map { "\($0)" } == nil)
  }
}
