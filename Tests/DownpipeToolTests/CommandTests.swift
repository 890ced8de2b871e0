import ArgumentParser
import DownpipeCore
import DownpipeFiles
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

@Suite(.endsHangs)
struct CommandTests {
  @Test("Every option of get is parsed")
  func get() throws {
    let command = try GetCommand.parse([
      "http://a/1", "http://a/2", "-i", "list", "-d", "dir", "-j", "7", "--per-host", "2", "-s", "4", "--ledger",
      "none",
      "--gunzip", "--move-into", "films", "--retry", "9", "-H", "A: b", "--header", "C: d", "--proxy", "http://p:1",
      "--on-conflict", "replace", "--json", "-q", "--timeout", "90", "--connect-timeout", "2.5",
      "-A", "agent",
      "--referer", "http://r/", "--dry-run",
    ])
    #expect(command.input.urls == ["http://a/1", "http://a/2"])
    #expect(command.input.inputFile == "list")
    #expect(command.input.header == ["A: b", "C: d"])
    #expect(command.steps.gunzip && command.steps.moveInto == "films" && command.input.dryRun)
    #expect(command.input.userAgent == "agent" && command.input.referer == "http://r/")
    let settings = try command.transfer.settings(directory: "/d", ledger: command.folder.location(directory: "/d"))
    #expect(
      settings
        == PipelineSettings(
          connectTimeLimit: .seconds(2.5), timeLimit: .seconds(90), jobs: 7,
          perHost: 2, connections: 4, retries: 9, directory: "/d", conflict: .replace,
          ledger: nil))
    #expect(command.reporting.json && command.reporting.quiet)
    #expect(!command.reporting.choice.urls.isWhole)
    #expect(try GetCommand.parse(["http://a/1", "--show-urls"]).reporting.choice.urls.isWhole)
    #expect(try ListCommand.parse(["--show-urls"]).urls.style.isWhole)
  }

  @Test("The time limits reach the source", arguments: PipelineSettings.Transport.allCases)
  func timeLimits(_ transport: PipelineSettings.Transport) throws {
    var settings = PipelineSettings(transport: transport, directory: "/d")
    #expect(!"\(try Pipeline(settings))".contains("seconds"))
    settings.connectTimeLimit = .seconds(2.5)
    settings.timeLimit = .seconds(90)
    let description = "\(try Pipeline(settings))"
    #expect(description.contains("2.5 seconds") && description.contains("90.0 seconds"), "\(description)")
  }

  @Test("The defaults are those of the help")
  func defaults() throws {
    let command = try GetCommand.parse(["http://a/1"])
    #expect(command.folder.directory == ".")
    #expect(try command.folder.location(directory: "/d") == .file("/d/.downpipe/ledger.sqlite"))
    #expect(command.transfer.jobs == 5)
    #expect(try GetCommand.parse(["http://a/1", "-o", "name"]).input.outputName == "name")
    #expect(try GetCommand.parse(["http://a/1", "--output", "name"]).input.outputName == "name")
    #expect(try GetCommand.parse(["-i", "-"]).input.inputFile == "-")
  }

  @Test(
    "The parser refuses wrong values",
    arguments: [
      ["-j", "0"], ["-j", "x"], ["--per-host", "0"], ["-s", "0"], ["-s", "33"], ["-s", "x"], ["--mirror"],
      ["--retry=-1"], ["--on-conflict", "ask"],
      ["--source", "ftp"], ["--nonsense"], ["--timeout", "0"], ["--timeout", "soon"], ["--connect-timeout", "-1"],
      ["--timeout", "nan"], ["-o"],
    ])
  func refused(_ arguments: [String]) {
    #expect(throws: (any Error).self) { try GetCommand.parse(["http://a/1"] + arguments) }
  }

  @Test(
    "Without a subcommand, the arguments are those of get",
    arguments: [
      ["http://a/1"], ["--json", "http://a/1"], ["-d", "dir", "http://a/1"], ["http://a/1", "-o", "list"],
      ["-o", "list", "http://a/1"], ["get", "http://a/1"], ["-i", "list"],
    ])
  func defaultSubcommand(_ arguments: [String]) throws {
    let command = try #require(try RootCommand.parseAsRoot(arguments) as? GetCommand)
    #expect(command.input.urls == ["http://a/1"] || command.input.inputFile == "list")
  }

  @Test("Subcommands are not taken for URLs", arguments: ["list", "resume"])
  func subcommands(_ name: String) throws {
    #expect(!(try RootCommand.parseAsRoot([name]) is GetCommand))
  }

  @Test("Segments and mirrors are in the help")
  func segmentsInHelp() throws {
    for option in ["--segments", "--mirror", "--jobs"] { #expect(GetCommand.helpMessage().contains(option)) }
    #expect(ResumeCommand.helpMessage().contains("--segments") && !ResumeCommand.helpMessage().contains("--mirror"))
  }

  @Test("Completion scripts know paths and values", arguments: ["zsh", "bash", "fish"])
  func completions(_ shell: String) throws {
    let script = RootCommand.completionScript(for: try #require(CompletionShell(rawValue: shell)))
    for word in ["import-resume-data", "keep-both", "move-into", "urlsession"] { #expect(script.contains(word)) }
  }

  @Test("remove needs ids or --all, and not both", arguments: [[], ["--all", "x"]])
  func remove(_ arguments: [String]) {
    #expect(throws: (any Error).self) { try RemoveCommand.parse(arguments) }
  }

  @Test(
    "restart needs ids, --failed or --all, and one of them only",
    arguments: [[], ["--all", "x"], ["--all", "--failed"]])
  func restart(_ arguments: [String]) throws {
    #expect(throws: (any Error).self) { try RestartCommand.parse(arguments) }
    #expect(try RestartCommand.parse(["a", "b"]).ids == ["a", "b"])
    #expect(throws: (any Error).self) { try RetryCommand.parse(["a"]) }
  }

  @Test("Relative paths need a current folder that exists")
  func currentFolder() throws {
    #expect(try Folder.absolutePath("a/../b", from: "/here") == "/here/b")
    #expect(try Folder.absolutePath("/a", from: nil) == "/a")
    #expect(try Folder.absolutePath("~", from: nil).hasPrefix("/"))
    for path in [".", "a", "./a", ""] {
      let error = #expect(throws: UsageError.self) { try Folder.absolutePath(path, from: nil) }
      #expect(error?.description.contains("current folder") == true)
    }
  }

  @Test("Exit statuses of a run")
  func statuses() {
    var tally = Tally(total: 2, finished: 2, startedAt: Samples.now, isComplete: true)
    #expect(DownloadRun.Ending.complete(tally).exitStatus == 0)
    tally.failed = 1
    #expect(DownloadRun.Ending.complete(tally).exitStatus == 1)
    #expect(DownloadRun.Ending.interrupted(tally).exitStatus == 130)
  }

  @Test("Paths outside the folder need --allow-outside")
  func outside() throws {
    #expect(try ResumeCommand.parse(["--allow-outside"]).outside.allowOutside)
    #expect(try RemoveCommand.parse(["--all", "--files", "--allow-outside"]).outside.allowOutside)
    let options = try ResumeCommand.parse([]).outside
    #expect(!options.allowOutside && options.scope(directory: "/d", ledger: .file("/d/l")) != .everywhere)
  }

  @Test("The soft limit of descriptors is raised")
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

  @Test(
    "A download gets two descriptors where there are many, and four where there are few",
    arguments: [(20_000, 9900), (1024, 412), (256, 58), (28, 1)])
  func downloadsWithinDescriptors(limit: Int, most: Int) {
    #expect(DescriptorLimit.mostDownloads(within: limit) == most)
  }

  @Test("A second signal ends the process at once, unless it comes with the first")
  func signals() {
    let signals = Interruption.Signals()
    let start = ContinuousClock.now
    #expect(signals.next(at: start) == .first)
    #expect(signals.next(at: start + .milliseconds(5)) == .repeated)
    #expect(signals.next(at: start + .milliseconds(700)) == .urgent)
  }
}

@Suite(.endsHangs)
struct FolderTests {
  @Test("A folder is created with its parents, and a file in its place is an error")
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
