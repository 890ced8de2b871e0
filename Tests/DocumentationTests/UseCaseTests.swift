import Foundation
import HangLimit
import Testing

/// The features of the reference systems: the article must have each of them, with a test that exists.
@Suite(.endsHangs)
struct UseCaseTests {
  private static let article = "Sources/Downpipe/Downpipe.docc/UseCases.md"

  /// The rows of the reference systems. A row that the article loses fails here.
  private static let systems: [(name: String, example: String, rows: [String])] = [
    (
      "ZYL", "ResumableLibrary",
      [
        "foreground and background transfers", "resume after the app was killed", "resume after the network was lost",
        "resume data kept", "progress; speed", "a set number of transfers at once", "no activation without network",
        "database: add-or-update", "only file names are stored",
      ]
    ),
    (
      "CX", "LargeFiles",
      [
        "session configurations: default, ephemeral, background",
        "the app's completion handler is called after all background events were handled",
        "a killed process's transfers come back as waiting",
        "number at once and \"allow cellular\" are the user's settings, kept, and take effect on running transfers",
        "network changes are watched; transfers pause and go on",
        "database of every item: state, sizes, progress, speed, last-speed time",
      ]
    ),
    (
      "LYF", "MediaLibrary",
      [
        "a unique key an item, independent of the URL; `containsTask(key)`", "free-form info carried with an item",
        "the item that is running now; all items by creation time; counts",
        "stop everything at log-out keeping resume state, go on at log-in",
        "start all (the earliest first, the rest wait), pause all, delete all",
        "up to 3 attempts to recover, then a failure notice",
        "file name from the server; wanted directory below a root (caches or documents)",
        "snapshots handed out are copies, safe to show; refresh interval is set by the app; one callback with all",
        "system-chosen timing (discretionary)",
      ]
    ),
    (
      "Links that expire", "ExpiringLinks",
      [
        "links that expire", "delete and download again the same item many times, safely",
        "two tasks never run for one item",
      ]
    ),
    (
      "asset manager", "AssetManager",
      [
        "silent downloads, pre-downloads, manual downloads; Wi-Fi only for some",
        "3 at once, the rest wait, the highest priority next", "the same URL again replaces callbacks and priority",
        "a file that is there already is done at once", "time-outs are always tried again, other errors once",
        "move into the named directory, made if it is missing",
      ]
    ),
  ]

  @Test("each feature of the reference systems has a row with a test that exists", arguments: 0..<5)
  func rows(_ number: Int) throws {
    let system = Self.systems[number]
    let sections = try Self.text(Self.article).split(separator: "\n### ").dropFirst()
    #expect(sections.count == Self.systems.count)
    let section = try #require(sections.first { $0.prefix { $0 != "\n" }.contains(system.name) })
    #expect(section.contains("`Examples/\(system.example)`"))
    let rows = section.matches(of: /\n\| (.+) \| (`Tests\/.+) \|/).map { (does: $0.1, tests: String($0.2)) }
    #expect(rows.count == system.rows.count, "\(system.name)")
    for (row, expected) in zip(rows, system.rows) {
      #expect(row.does.hasPrefix(expected), "\(row.does) in place of \(expected)")
      let file = try #require(row.tests.firstMatch(of: /`(Tests\/[\w\/]+\.swift)`/).map { String($0.1) })
      // A title may be on a line of its own.
      let tests = try Self.text(file).replacing(/@Test\(\s+"/, with: "@Test(\"")
      let titles = row.tests.matches(of: /“(.+?)”/).map(\.1)
      #expect(!titles.isEmpty, "no test for: \(row.does)")
      for title in titles { #expect(tests.contains("@Test(\"\(title)\""), "\(file) has no test “\(title)”") }
    }
  }

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: Compiler.package.appending(path: path), encoding: .utf8)
  }
}
