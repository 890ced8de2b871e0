import ArgumentParser
import Foundation

/// Compares Downpipe with curl, aria2c, wget2 and axel on servers of this machine.
struct CompareCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compare",
    abstract: "Compare Downpipe with curl, aria2c, wget2 and axel: wall time, CPU, memory and bytes fetched.",
    discussion: """
      Starts its own nginx, and removes everything at the end. Prints a Markdown report, or writes it with a chart and \
      the raw numbers into the folder of --output.
      """)

  @Flag(help: "Small sizes and one run: shows that everything works, and says nothing about speed.") var quick = false
  @Option(help: "The rows to run, separated by commas (default: all, see --list).") var rows: String?
  @Flag(help: "Print the names of the rows.") var list = false
  @Option(help: "The number of measured runs.") var runs: Int?
  @Option(help: "A folder in memory (default: /dev/shm, or that for temporary files).", completion: .directory)
  var folder: String?
  @Option(help: "A folder on disk.", completion: .directory) var diskFolder = "/var/tmp"
  @Option(help: "A folder for results.md, chart.svg and results.json.", completion: .directory) var output: String?
  @Flag(help: "Keep the other rows of results.json in the folder of --output.") var merge = false
  @Flag(help: "State whether Downpipe is within its limits; fail if it is not.") var musts = false
  @Option(help: "The downpipe to measure (default: the one beside this program).") var downpipe: String?
  @Option(help: "The nginx to use.") var nginx: String?
  @Flag(help: "Go on without peers that are not installed.") var allowMissing = false
  @Option(
    help: ArgumentHelp(
      "Kill a program after this time (default: 600 for Downpipe; 180 for the others, 15 with --quick).",
      valueName: "seconds"))
  var timeLimit: Int?

  func validate() throws {
    guard runs ?? 1 > 0, timeLimit ?? 1 > 0 else { throw ValidationError("The numbers must be positive.") }
    guard !merge || output != nil else { throw ValidationError("--merge needs --output.") }
    guard !(quick && musts) else { throw ValidationError("--quick measures nothing: leave out --musts.") }
  }

  func run() async throws {
    let rows = try chosenRows()
    guard !list else {
      for row in rows { print(row.name.padding(toLength: 10, withPad: " ", startingAt: 0) + row.title) }
      return
    }
    Leftovers.shared.removeAtSignals()
    do {
      try await compare(rows)
    } catch let error as BenchmarkError {
      FileHandle.standardError.write(Data("\(error)\n".utf8))
      throw ExitCode.failure
    }
  }

  private func compare(_ rows: [Row]) async throws {
    let programs = try Programs(downpipe: downpipe, nginx: nginx, allowsMissing: allowMissing)
    // Before the work, which may take half an hour.
    if let output { try FileManager.default.createDirectory(atPath: output, withIntermediateDirectories: true) }
    #if DEBUG
      if !quick { note("This is a debug build: its times say nothing. Build it with -c release.") }
    #endif
    let settings = Comparison.Settings(
      runs: runs ?? (quick ? 1 : 5), timeLimit: .seconds(timeLimit ?? 600),
      peerTimeLimit: .seconds(timeLimit ?? (quick ? 15 : 180)), note: { note($0) })
    var results = try await Comparison.run(
      rows, isQuick: quick, programs: programs, settings: settings, folder: folder ?? Self.memoryFolder,
      diskFolder: diskFolder)
    let file = output.map { URL(filePath: $0).appending(path: "results.json") }
    if merge, let file, let data = try? Data(contentsOf: file) {
      var earlier = try JSONDecoder().decode(Results.self, from: data)
      earlier.machine = results.machine
      earlier.merge(results)
      results = earlier
    }
    let definitions = Dictionary(uniqueKeysWithValues: Row.all(isQuick: quick).map { ($0.name, $0) })
    let verdicts =
      musts ? results.rows.map { row in definitions[row.name]?.musts.map { Verdict($0, for: row) } ?? [] } : []
    let report = MarkdownReport(results: results, verdicts: verdicts)
    if let output, let file {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
      try encoder.encode(results).write(to: file)
      try report.text.write(toFile: output + "/results.md", atomically: true, encoding: .utf8)
      try Chart(results: results).text.write(toFile: output + "/chart.svg", atomically: true, encoding: .utf8)
      print("Wrote results.md, chart.svg and results.json into \(output)")
    } else {
      print(report.text)
    }
    let isBroken = results.rows.contains { row in
      row.entries.contains { $0.program == DownpipePeer.title && $0.failure != nil }
    }
    if isBroken || verdicts.joined().contains(where: { $0.isMet == false }) { throw ExitCode.failure }
  }

  private func chosenRows() throws -> [Row] {
    let all = Row.all(isQuick: quick)
    guard let rows else { return all }
    return try rows.split(separator: ",").map { name in
      guard let row = all.first(where: { $0.name == name }) else {
        throw ValidationError("There is no row “\(name)”, only \(all.map(\.name).joined(separator: ", ")).")
      }
      return row
    }
  }

  private static var memoryFolder: String {
    FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
  }
}

/// Says on standard error what happens.
private func note(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
