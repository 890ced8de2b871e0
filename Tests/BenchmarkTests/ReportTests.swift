import Foundation
import HangLimit
import Testing

#if canImport(FoundationXML)
  import FoundationXML
#endif

@testable import Benchmark

/// What the benchmark makes of numbers.
@Suite(.endsHangs)
struct ReportTests {
  private static func entry(_ program: String, _ wall: [Double], cpu: Double = 1) -> Entry {
    Entry(
      program: program, wallSeconds: wall, cpuSeconds: wall.map { _ in cpu },
      peakMemory: wall.map { _ in 10 * 1_048_576 },
      fetchedBytes: 1_024)
  }

  private static var row: RowResult {
    RowResult(
      name: "http", title: "1 GiB & <more>", ideal: 0.5,
      entries: [
        entry("Downpipe", [1.2, 0.9, 1.0], cpu: 0.4), entry("curl", [2.0, 2.2, 2.1], cpu: 0.5),
        entry("aria2c", [1.25, 1.5, 1.0]), Entry(program: "axel", failure: "wrong result:\nit | differs"),
      ])
  }

  private static var results: Results {
    Results(machine: Machine(programs: [("curl", "1.0")]), isQuick: false, runs: 3, rows: [row])
  }

  @Test(arguments: [([3.0, 1, 2], 2.0), ([4, 1, 2, 3], 2.5), ([5], 5)] as [([Double], Double)])
  func theMedian(values: [Double], median: Double) {
    #expect(values.median == median)
    #expect([Double]().median == nil)
  }

  @Test(
    arguments: [
      (Must.wall(.best(0.8)), true), (.wall(.best(0.79)), false), (.wall(.program("curl", 0.5)), true),
      (.wall(.program("curl", 0.4)), false), (.wall(.less(thanProgram: "aria2c")), true), (.wall(.ideal(2)), true),
      (.wall(.ideal(1.9)), false), (.cpu(.best(0.8)), true), (.cpu(.best(0.7)), false), (.memory(10 << 20), true),
      (.memory(1 << 20), false), (.wall(.program("axel", 1)), nil), (.wall(.program("wget2", 1)), nil),
      (.memoryEach(1), nil), (.fetched(1_023), false), (.fetched(1_024), true),
    ] as [(Must, Bool?)])
  func limits(must: Must, isMet: Bool?) {
    let verdict = Verdict(must, for: Self.row)
    #expect(verdict.isMet == isMet, "\(verdict.text)")
  }

  @Test func equalIsNotLess() {
    var row = Self.row
    row.entries[2] = Self.entry("aria2c", [1.0])
    #expect(Verdict(.wall(.less(thanProgram: "aria2c")), for: row).isMet == false)
  }

  @Test func memoryOfEachDownloadIsWithoutTheProcess() {
    var entry = Self.entry("Downpipe", [1])
    entry.baseMemory = 9 * 1_048_576
    #expect(entry.value(.memoryEach, downloads: 1_025) == 1_024)
    #expect(entry.value(.memoryEach) == nil)
  }

  @Test func theMarkdownHasAllFigures() {
    let text = MarkdownReport(results: Self.results, verdicts: [[Verdict(.wall(.best(0.5)), for: Self.row)]]).text
    for part in [
      "| 1 GiB & <more> | 1 s | aria2c 1.25 s | 0.80 × | 0.40 × | 1.00 × |",
      "| Downpipe | 1 s (900 ms – 1.20 s) | 0.80 × | 400 ms (400 ms – 400 ms) | 0.80 × |",
      "| axel | no result: wrong result: it / differs |", "The least time that the servers permit: 500 ms.",
      "- wall ≤ 0.50 × of the best peer: MISSED, 1 s of at most 625 ms",
    ] {
      #expect(text.contains(part), "\(part) is missing in\n\(text)")
    }
    // All rows of a table have the same number of cells.
    let counts = text.split(separator: "\n\n").filter { $0.hasPrefix("|") }.map { table in
      Set(table.split(separator: "\n").map { line in line.count { $0 == "|" } })
    }
    #expect(counts.count == 2)
    #expect(counts.allSatisfy { $0.count == 1 }, "\(counts)")
  }

  @Test func theChartIsXML() throws {
    let text = Chart(results: Self.results).text
    let parser = XMLParser(data: Data(text.utf8))
    #expect(parser.parse(), "\(parser.parserError.map { "\($0)" } ?? "")\n\(text)")
    #expect(text.contains("prefers-color-scheme: dark"))
    #expect(text.contains("1 GiB &amp; &lt;more>"))
    #expect(text.contains("no result"))
  }

  @Test func aRowThatRanAgainReplacesTheEarlierOne() {
    var results = Self.results
    var later = Self.results
    later.rows[0].entries = []
    later.rows.append(RowResult(name: "https", title: ""))
    results.merge(later)
    #expect(results.rows.map(\.name) == ["http", "https"])
    #expect(results.rows[0].entries.isEmpty)
  }

  @Test(arguments: [true, false])
  func rowsHaveNamesOfTheirOwnThatAreDescribed(isQuick: Bool) throws {
    let names = Row.all(isQuick: isQuick).map(\.name)
    #expect(Set(names).count == names.count)
    let package = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
    let text = try String(contentsOf: package.appending(path: "Examples/Benchmark/README.md"), encoding: .utf8)
    let described = text.split(separator: "\n").filter { $0.hasPrefix("| `") }.flatMap { line in
      line.split(separator: "|")[0].split(separator: ",").map { $0.filter { $0 != " " && $0 != "`" } }
    }
    #expect(described == names)
  }
}
