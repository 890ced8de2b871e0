import ArgumentParser
import Downpipe
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct LimitOptionTests {
  private func get(_ arguments: String...) throws -> GetCommand { try GetCommand.parse(["http://a/1"] + arguments) }

  private func pipeline(_ transfer: TransferOptions) throws -> Pipeline {
    try Pipeline(transfer.settings(directory: "/d", ledger: nil))
  }

  /// What the tool prints for arguments that it refuses.
  private func message(_ arguments: String...) -> String {
    do {
      _ = try RootCommand.parseAsRoot(["get", "http://a/1"] + arguments)
      return ""
    } catch {
      return RootCommand.fullMessage(for: error)
    }
  }

  @Test("The speed and its hours reach the pipeline")
  func rates() throws {
    #expect(try pipeline(get().transfer).rates.isEmpty)
    let limited = try get("--limit-rate", "2M", "--limit-rate-during", "08:00-18:30")
    #expect(try pipeline(limited.transfer).rates.map(\.summary) == ["2.10 MB/s, 08:00–18:30"])
    #expect("\(try pipeline(limited.transfer))".contains("2.10 MB/s, 08:00–18:30"))
    let resumed = try ResumeCommand.parse(["--limit-rate", "500k"]).transfer
    #expect(try pipeline(resumed).rates.map(\.summary) == ["512 KB/s"])
  }

  @Test("The number of connections to a file reaches the pipeline")
  func segments() throws {
    #expect(try pipeline(get().transfer).segments?.summary == "up to 4 connections, for files from 32.0 MiB")
    #expect(try pipeline(get("-s", "8").transfer).segments?.summary == "8 connections, for files from 1.00 MiB")
    #expect(try pipeline(get("--segments", "1").transfer).segments == nil)
    let resumed = try ResumeCommand.parse(["-s", "32"]).transfer
    #expect("\(try pipeline(resumed))".contains("32 connections"))
    #expect(message("-s", "0").contains("--segments must be a number from 1 to 32"))
  }

  @Test("One host has a limit of its own")
  func perHost() throws {
    let limits = try pipeline(get("-j", "7", "--per-host", "2").transfer).admission
    #expect(limits.map(\.maximumConcurrent) == [7] && limits.map(\.maximumPerHost) == [2])
  }

  @Test(
    "Without the option, large files of one host share its connections",
    arguments: [(["-j", "16"], 16), (["-j", "1"], 4), (["-s", "8"], nil), (["-s", "8", "--per-host", "3"], 3)]
      as [([String], Int?)])
  func connectionsPerHost(options: [String], most: Int?) throws {
    let limits = try pipeline(GetCommand.parse(["http://a/1"] + options).transfer).admission
    #expect(limits.map(\.maximumPerHost) == [most])
  }

  @Test(
    "Priorities are words or numbers",
    arguments: [
      ("high", 100), ("normal", 0), ("low", -100), ("7", 7), ("-7", -7), ("32767", .max), ("-32768", .min),
    ] as [(String, Int16)])
  func priorities(text: String, level: Int16) throws {
    let plan = try get("--priority", text).input.plan()
    #expect(try plan.request(for: "http://a/1").priority == Priority(level))
    #expect(try ResumeCommand.parse(["--priority", text]).priority == Priority(level))
    #expect(try get().input.plan().request(for: "http://a/1").priority == .normal)
  }

  @Test("Wrong values are refused in words")
  func refused() {
    for text in ["0", "fast", "-1", "2 M", "1e3"] {
      #expect(message("--limit-rate=\(text)").contains("give the bytes for each second, such as 500k or 2M"), "\(text)")
    }
    for text in ["", "High", "urgent", "32768", "1.5"] {
      #expect(message("--priority", text).contains("give high, normal, low, or a number from -32768 to 32767"))
    }
    #expect(message("--limit-rate-during", "8-18").contains("--limit-rate-during <HH:MM-HH:MM>"))
    #expect(
      message("--limit-rate-during", "08:00-18:00").contains(
        "--limit-rate-during needs --limit-rate: the speed that applies during these hours"))
    #expect(message("--per-host", "0").contains("--per-host must be a number from 1 to 10000"))
    #expect(message("--jobs", "10001").contains("--jobs must be a number from 1 to 10000"))
  }

  // MARK: list

  @Test("A list says for what each download waits")
  func reasons() {
    let error = DownloadError(.httpStatus, "the server answered 503")
    let zone = TimeZone.gmt
    var reasons = ListedReasons()
    #expect(reasons.reason(for: Samples.status(.waiting(.suspended)), in: zone) == "no download is running")
    #expect(
      reasons.reason(for: Samples.status(.waiting(.retry(at: Samples.now, after: error))), in: zone)
        == "until 2027-01-15 08:00:00: trying again after: the server answered 503")
    #expect(
      reasons.reason(for: Samples.status(.waiting(.missing(.disk, until: Samples.now, after: error))), in: zone)
        == "until 2027-01-15 08:00:00: waiting for disk space: the server answered 503")
    #expect(
      reasons.reason(for: Samples.status(.waiting(.dependency("a", .failed))), in: zone)
        == "waits for “a”, which has failed")
    #expect(reasons.reason(for: Samples.status(.waiting(.elsewhere)), in: zone) == nil)
    #expect(reasons.reason(for: Samples.status(.failed(error)), in: zone) == nil)

    let elsewhere = [
      Samples.status(.waiting(.elsewhere)), Samples.status(.waiting(.elsewhere), url: "https://other.org/a"),
      Samples.status(.waiting(.suspended)),
    ]
    reasons.running = RunningDownloads(elsewhere: elsewhere)
    #expect(
      reasons.reason(for: Samples.status(.waiting(.suspended)), in: zone)
        == "waiting for its turn: 2 downloads are running, 1 from its host")
    reasons.running = RunningDownloads(elsewhere: Array(elsewhere.prefix(1)))
    #expect(
      reasons.reason(for: Samples.status(.waiting(.suspended), url: "https://b.org/"), in: zone)
        == "waiting for its turn: 1 download is running")
  }
}
