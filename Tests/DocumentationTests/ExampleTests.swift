import Foundation
import HangLimit
import Testing

/// Compiles the examples of the README, of the articles and of the comments.
@Suite(.endsHangs)
struct ExampleTests {
  /// The examples whose stages a build has.
  /// - Parameter missing: The texts that only examples with missing stages have.
  static func examples(without missing: [String]) throws -> [DocumentedExample] {
    let folders = ["README.md", "Sources", "Plugins", "Examples"]
    return try DocumentedExample.all(in: Compiler.package, below: folders).filter { example in
      func mentions(_ text: String) -> Bool { example.code.contains { $0.contains(text) } }
      if ExampleHarness.exclusions.contains(where: { example.path.hasSuffix($0.path) && mentions($0.text) }) {
        return false
      }
      return !missing.contains(where: mentions)
    }
  }

  /// What the examples of optional stages mention, by the trait that the stages need.
  static let optional = [
    "SQLite": ["SQLiteLedger"],
    // Without the trait HTTPSource is Foundation's URLSession, which has fewer settings.
    "Curl": ["HTTPSource {", "HTTPSource(.", "HTTPSource.Configuration", "FileTransferSource", "S3(", "S3Source"],
    "AsyncHTTPClient": ["AsyncHTTPClientSource"],
    "Command": ["RunCommand"],
    "Archive": ["Unarchive(", "Decompress("],
    "Signature": ["VerifySignature"],
    "Postgres": ["PostgresLedger("],
  ]

  private static var ours: [DocumentedExample] {
    get throws {
      var optional = optional
      #if SQLite
        optional["SQLite"] = nil
      #endif
      #if LIBCURL
        optional["Curl"] = nil
      #endif
      #if AsyncHTTPClient
        optional["AsyncHTTPClient"] = nil
      #endif
      #if Command
        optional["Command"] = nil
      #endif
      #if Archive
        optional["Archive"] = nil
      #endif
      #if Signature
        optional["Signature"] = nil
      #endif
      #if Postgres
        optional["Postgres"] = nil
      #endif
      return try examples(without: optional.values.flatMap(\.self))
    }
  }

  @Test("every example of the README and of the documentation compiles as it is")
  func examplesCompile() throws {
    let examples = try Self.ours
    #expect(examples.count > 50, "the documentation has lost its examples")
    #expect(examples.filter(\.isIncomplete).map { "\($0.path):\($0.line)" } == [], "code is left out")
    let ending = try Compiler.check(ExampleHarness.documentation.source(of: examples))
    #expect(ending.status == 0, "\(ending.output)")
  }

  @Test("an example that does not compile is found, at its own place")
  func mistakesAreFound() throws {
    let example = DocumentedExample(path: "Guide.md", line: 40, code: ["let a = 1", "let b: String = a"])
    let ending = try Compiler.check(ExampleHarness.documentation.source(of: [example]))
    #expect(ending.status != 0)
    #expect(ending.output.contains("Guide.md:41:17: error: cannot convert value of type 'Int'"), "\(ending.output)")
  }

  @Test("each exclusion is still needed")
  func exclusions() throws {
    let all = try DocumentedExample.all(in: Compiler.package, below: ["README.md", "Sources", "Plugins"])
    for exclusion in ExampleHarness.exclusions {
      let isNeeded = all.contains { example in
        example.path.hasSuffix(exclusion.path) && example.code.contains { $0.contains(exclusion.text) }
      }
      #expect(isNeeded, "\(exclusion.path): \(exclusion.text), because \(exclusion.because)")
    }
  }

  // MARK: Extraction

  @Test func blocksOfMarkdown() {
    let text =
      "# A\n```swift\nlet a = 1\n```\n```\nno Swift\n```\n  ```swift\n```swift\n\nlet b = 2\n```\n```swift\nopen"
    #expect(
      DocumentedExample.blocks(of: text, at: "a.md") == [
        DocumentedExample(path: "a.md", line: 3, code: ["let a = 1"]),
        DocumentedExample(path: "a.md", line: 10, code: ["", "let b = 2"]),
      ])
  }

  @Test func blocksOfComments() {
    let text = """
      /// A type.
      ///
      /// ```swift
      /// let a = 1
      ///   a + 1
      ///
      /// ```
      struct A {
        /// ```swift
        /// b()
        /// ```
        let b = "```swift"
        /// ```swift
        /// cut off
        let c = 1
      }
      """
    #expect(
      DocumentedExample.blocks(of: text, at: "a.swift") == [
        DocumentedExample(path: "a.swift", line: 4, code: ["let a = 1", "  a + 1", ""]),
        DocumentedExample(path: "a.swift", line: 10, code: ["b()"]),
      ])
  }

  @Test(arguments: [
    ("f { … }", true), ("…", true), ("f() // … and so on", false), ("let a = \"Bearer …\"", false),
    ("let a = \"//\"; …", true),
  ])
  func incompleteCode(_ line: String, _ isIncomplete: Bool) {
    #expect(DocumentedExample(path: "a.md", line: 1, code: ["let a = 1", line]).isIncomplete == isIncomplete)
  }
}
