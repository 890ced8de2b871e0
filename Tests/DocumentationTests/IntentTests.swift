import Downpipe
import Foundation
import HangLimit
import Testing

/// Examples with the default intent of requests: a gate that exempts it holds nothing back unless a request states another.
@Suite(.endsHangs)
struct IntentTests {
  @Test("the default intent of a request is .userInitiated")
  func defaultIntent() throws {
    #expect(try DownloadRequest("https://example.org/file").intent == .userInitiated)
  }

  @Test("an example that names .userInitiated also states the intent of a request")
  func examplesStateIntents() throws {
    let blocks = try DocumentedExample.all(
      in: Compiler.package, below: ["README.md", "Sources", "Plugins", "Examples"])
    let examples = try blocks.map { ("\($0.path):\($0.line)", $0.code.joined(separator: "\n")) } + Self.programs
    let naming = examples.filter { $0.1.contains(".userInitiated") }
    #expect(naming.count > 4, "the examples of intents are gone")
    for (place, code) in naming { #expect(!Self.letsAllPass(code), "\(place) states no intent of a request") }
  }

  @Test(arguments: [
    ("WiFiOnly(unless: .userInitiated)\nDownloadRequest(\"https://example.org/film\", priority: .high)", true),
    ("saving.unless(.userInitiated)", true),
    ("WiFiOnly(unless: .userInitiated)\nDownloadRequest(url, intent: .userInitiated)", true),
    ("WiFiOnly(unless: .userInitiated)\nstruct Asset { var intent: Intent }", true),
    ("WiFiOnly(unless: .userInitiated)\nDownloadRequest(url, intent: .prefetch)", false),
    ("WiFiOnly(unless: .userInitiated)\nDownloadRequest(url, id: id, intent: intent)", false),
    ("WiFiOnly()\nDownloadRequest(url)", false),
  ])
  func rule(_ code: String, _ letsAllPass: Bool) { #expect(Self.letsAllPass(code) == letsAllPass) }

  /// Whether a gate exempts the default intent, and no request has another.
  private static func letsAllPass(_ code: String) -> Bool {
    code.contains(".userInitiated") && !code.contains(/[(,]\s*intent: (?!Intent\b|\.userInitiated\b)/)
  }

  /// The programs, each a folder of `Examples`: its name, and all of its code without comments.
  private static var programs: [(String, String)] {
    get throws {
      let files = FileManager.default
      let root = Compiler.package.appending(path: "Examples")
      let paths = try files.subpathsOfDirectory(atPath: root.path(percentEncoded: false)).sorted()
      let sources = Dictionary(grouping: paths.filter { $0.hasSuffix(".swift") }) { String($0.prefix { $0 != "/" }) }
      return try sources.sorted { $0.key < $1.key }.map { name, paths in
        let lines = try paths.flatMap { path in
          try String(contentsOf: root.appending(path: path), encoding: .utf8).split(separator: "\n")
        }
        let code = lines.filter { !$0.drop(while: \.isWhitespace).hasPrefix("//") }
        return ("Examples/\(name)", code.joined(separator: "\n"))
      }
    }
  }
}
