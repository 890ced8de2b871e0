import ArgumentParser
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct VersionTests {
  @Test("The newest entry of the change log is the tool's version")
  func changelog() throws {
    let file = URL(filePath: "../../Sources/Downpipe/Downpipe.docc/CHANGELOG.md", relativeTo: URL(filePath: #filePath))
    let log = try String(contentsOf: file, encoding: .utf8)
    let newest = log.split(separator: "\n").first { $0.hasPrefix("### ") }
    #expect(newest == "### \(ToolVersion.current)")
    #expect(RootCommand.configuration.version == ToolVersion.current)
  }
}
