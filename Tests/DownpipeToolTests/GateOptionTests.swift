import ArgumentParser
import Downpipe
import DownpipeTesting
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct GateOptionTests {
  private func settings(_ arguments: String...) throws -> GateSettings {
    try GateOptions.parse(arguments).settings
  }

  @Test("Options become gates")
  func gates() throws {
    #expect(try settings() == GateSettings())
    #expect(GateSettings().gates(directory: "/d").isEmpty)
    let all = try settings("--wifi-only", "--window", "22:00-6:30", "--min-free", "2G")
    let gates = all.gates(directory: "/d")
    #expect(gates.map(\.name) == ["WiFiOnly", "TimeWindow", "DiskSpace"])
    #expect(gates.map(\.summary) == ["", "22:00–06:30", "2.00 GiB stay free at /d"])
    for command in [
      try GetCommand.parse(["http://a/1", "--wifi-only"]).gates, try ResumeCommand.parse(["--wifi-only"]).gates,
    ] {
      #expect(command.settings == GateSettings(wifiOnly: true))
    }
    var pipeline = PipelineSettings(directory: "/d")
    pipeline.gates = all
    #expect(try Pipeline(pipeline).gates.map(\.name) == ["WiFiOnly", "TimeWindow", "DiskSpace"])
  }

  @Test("Wrong windows are refused", arguments: ["", "22:00", "22:00-", "22:00-22:00", "22-6", "22:00-25:00", "a-b"])
  func windows(text: String) {
    #expect(throws: (any Error).self) { try settings("--window", text) }
  }

  @Test(
    "Sizes have units",
    arguments: [
      ("0", 0), ("4096", 4096), ("1b", 1), ("1K", 1024), ("500M", 500 << 20), ("2g", 2 << 30), ("1.5G", 3 << 29),
      ("2GiB", 2 << 30), ("10MB", 10_000_000), ("1kb", 1000), ("3E", 3 << 60), ("1.5", 2),
    ] as [(String, Int64)])
  func sizes(text: String, bytes: Int64) { #expect(ByteSize(text)?.bytes == bytes) }

  @Test(
    "Wrong sizes are refused",
    arguments: ["", "G", "-1", "1 G", "1X", "1GiBs", "0x10", "1e3", "nan", "5E", "1..2", "١"])
  func wrongSizes(text: String) { #expect(ByteSize(text) == nil) }

  @Test("A waiting download has the reason of a closed gate")
  func reasons() async throws {
    let gates: [any Gate] = [FakeGate(), FakeGate(.closed("B: no"), name: "B")]
    let rules = await GateRules(gates)
    #expect(rules.reason(for: Samples.status(.waiting(.suspended))) == "B: no")
    #expect(rules.reason(for: Samples.status(.waiting(.elsewhere))) == nil)
    #expect(rules.reason(for: Samples.status(.paused)) == nil)
    #expect(await GateRules([FakeGate()]).reason(for: Samples.status(.waiting(.suspended))) == nil)
    let row = RecordTable.row(Samples.status(.waiting(.suspended)), reason: "B: no")
    #expect(row.hasSuffix("film.mkv  (B: no)"))
  }
}
