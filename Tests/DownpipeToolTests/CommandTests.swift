import ArgumentParser
import DownpipeCore
import DownpipeFiles
import Foundation
import Testing

@testable import DownpipeTool

@Suite(.timeLimit(.minutes(1)))
struct CommandTests {
  @Test("Every option of get has its place")
  func get() throws {
    let command = try GetCommand.parse([
      "http://a/1", "http://a/2", "-i", "list", "-d", "dir", "-j", "7", "--per-host", "2", "-s", "4", "--ledger",
      "none",
      "--gunzip", "--move-into", "films", "--retry", "9", "-H", "A: b", "--header", "C: d", "--proxy", "http://p:1",
      "--on-conflict", "replace", "--source", "http", "--json", "-q",
    ])
    #expect(command.input.urls == ["http://a/1", "http://a/2"])
    #expect(command.input.inputFile == "list")
    #expect(command.input.header == ["A: b", "C: d"])
    #expect(command.input.gunzip && command.input.moveInto == "films")
    let settings = command.transfer.settings(directory: "/d", ledger: command.folder.ledgerPath(directory: "/d"))
    #expect(
      settings
        == PipelineSettings(
          transport: .http, proxy: "http://p:1", jobs: 7, perHost: 2, retries: 9, directory: "/d", conflict: .replace,
          ledger: nil))
    #expect(command.transfer.segments == 4)
    #expect(command.reporting.json && command.reporting.quiet)
  }

  @Test("The defaults")
  func defaults() throws {
    let command = try GetCommand.parse(["http://a/1"])
    #expect(command.folder.directory == ".")
    #expect(command.folder.ledgerPath(directory: "/d") == "/d/.downpipe/ledger.sqlite")
    #expect(command.transfer.jobs == 5)
    #expect(try GetCommand.parse(["http://a/1", "-o", "name"]).input.outputName == "name")
    #expect(try GetCommand.parse(["http://a/1", "--output", "name"]).input.outputName == "name")
    #expect(try GetCommand.parse(["-i", "-"]).input.inputFile == "-")
  }

  @Test(
    "Wrong usage is refused by the parser",
    arguments: [
      ["-j", "0"], ["-j", "x"], ["--per-host", "0"], ["-s", "0"], ["--retry=-1"], ["--on-conflict", "ask"],
      ["--source", "ftp"], ["--nonsense"], ["--source", "urlsession", "--proxy", "http://p:1"], ["-o"],
    ])
  func refused(_ arguments: [String]) {
    #expect(throws: (any Error).self) { try GetCommand.parse(["http://a/1"] + arguments) }
  }

  @Test("remove needs ids or --all, and not both", arguments: [[], ["--all", "x"]])
  func remove(_ arguments: [String]) {
    #expect(throws: (any Error).self) { try RemoveCommand.parse(arguments) }
  }

  @Test("Exit statuses of a run")
  func statuses() {
    var tally = Tally(total: 2, finished: 2, startedAt: Samples.now, isComplete: true)
    #expect(DownloadRun.Ending.complete(tally).exitStatus == 0)
    tally.failed = 1
    #expect(DownloadRun.Ending.complete(tally).exitStatus == 1)
    #expect(DownloadRun.Ending.interrupted(tally).exitStatus == 130)
  }

  @Test("What the ledger names outside of the folder is obeyed on demand only")
  func outside() throws {
    #expect(try ResumeCommand.parse(["--allow-outside"]).outside.allowOutside)
    #expect(try RemoveCommand.parse(["--all", "--files", "--allow-outside"]).outside.allowOutside)
    let options = try ResumeCommand.parse([]).outside
    #expect(!options.allowOutside && options.scope(directory: "/d", ledger: "/d/l") != .everywhere)
  }

  @Test("The soft limit of descriptors is raised, and never lowered")
  func descriptors() {
    DescriptorLimit.raise()
    var limit = rlimit()
    #if canImport(Glibc)
      #expect(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    #else
      #expect(getrlimit(RLIMIT_NOFILE, &limit) == 0)
    #endif
    #expect(limit.rlim_cur >= min(limit.rlim_max, 65_536))
  }

  @Test("A second signal ends the process at once, one that comes with the first does not")
  func signals() {
    let wishes = Interruption.Wishes()
    let start = ContinuousClock.now
    #expect(wishes.another(at: start) == .first)
    #expect(wishes.another(at: start + .milliseconds(5)) == .same)
    #expect(wishes.another(at: start + .milliseconds(700)) == .urgent)
  }
}

@Suite(.timeLimit(.minutes(1)))
struct FolderTests {
  @Test("A folder is made with those above it, and a file in its place is refused")
  func prepare() throws {
    let root = FileManager.default.temporaryDirectory.appending(path: "folder-\(UUID().uuidString)").path()
    defer { try? FileManager.default.removeItem(atPath: root) }
    #expect(try Folder.prepare(root + "/a/b/", option: "-d") == root + "/a/b")
    #expect(Folder.kind(root + "/a/b") == .directory)
    try Data().write(to: URL(filePath: root + "/file"))
    for path in [root + "/file", root + "/file/below", ""] {
      #expect(throws: UsageError.self) { try Folder.prepare(path, option: "-d") }
    }
  }
}
