import ArgumentParser
import Downpipe
import Foundation

/// The folder and the ledger of a command that adds downloads.
struct FolderOptions: ParsableArguments, LedgerPlace {
  @Option(
    name: [.short, .long],
    help: ArgumentHelp("Save files in this folder, which is created if it does not exist.", valueName: "dir"),
    completion: .directory)
  var directory = "."

  @Option(
    help: ArgumentHelp(
      "Keep the state of downloads in this file, in memory if it is “none”, or in a database that machines share: "
        + "postgresql://user@host/database (default: <dir>/.downpipe/ledger.sqlite).", valueName: "place"),
    completion: .file())
  var ledger: String?
}

/// The folder and the ledger of a command that needs existing downloads.
struct LedgerOptions: ParsableArguments, LedgerPlace {
  @Option(
    name: [.short, .long],
    help: ArgumentHelp("The folder of the downloads, as for “get”.", valueName: "dir"), completion: .directory)
  var directory = "."

  @Option(
    help: ArgumentHelp(
      "The ledger of the downloads: a file, or postgresql://user@host/database (default: "
        + "<dir>/.downpipe/ledger.sqlite).", valueName: "place"),
    completion: .file())
  var ledger: String?
}

/// Finds the folder and the ledger of a command.
protocol LedgerPlace {
  var directory: String { get }
  var ledger: String? { get }
}

extension LedgerPlace {
  /// The ledger of a folder; `nil` for “none”.
  func location(directory: String) throws(UsageError) -> LedgerLocation? {
    switch ledger {
    case "none": nil
    case let text?: try LedgerLocation(text)
    case nil: .file(directory + "/.downpipe/ledger.sqlite")
    }
  }

  /// The same, or an error where this build has no such ledger.
  func usableLocation(directory: String) throws(UsageError) -> LedgerLocation? {
    let location = try location(directory: directory)
    try location?.check()
    return location
  }

  /// The folder and the ledger, which must exist.
  func existing() throws(UsageError) -> (directory: String, ledger: LedgerLocation) {
    let directory = try Folder.absolutePath(directory)
    guard Folder.kind(directory) == .directory else {
      throw UsageError("the folder “\(self.directory)” does not exist: choose another one with --directory")
    }
    guard let ledger = try location(directory: directory) else {
      throw UsageError("--ledger none: this command needs the file of a ledger")
    }
    if let path = ledger.path, Folder.kind(path) != .file {
      throw UsageError("the ledger “\(path)” does not exist: choose another one with --directory or --ledger")
    }
    return (directory, ledger)
  }

  /// Runs `body` with a downloader that starts nothing.
  ///
  /// - Parameters:
  ///   - needsLedger: Whether a missing ledger is an error; it is an empty one otherwise.
  ///   - scope: Where files may be removed or moved; the folders of the command and of the ledger when `nil`.
  func withDownloader<Result>(
    needsLedger: Bool = true, scope: PathScope? = nil, _ body: (Downloader) async throws -> Result
  ) async throws -> Result {
    let downloader = try await open(needsLedger: needsLedger, scope: scope)
    do {
      let result = try await body(downloader)
      await downloader.shutdown()
      return result
    } catch {
      await downloader.shutdown()
      throw error
    }
  }

  private func open(needsLedger: Bool, scope: PathScope?) async throws -> Downloader {
    let directory = try Folder.absolutePath(directory)
    let location = try location(directory: directory)
    let isMissing = Folder.kind(directory) == .directory && location?.isMissing == true
    var settings = PipelineSettings(directory: directory, showsAll: true)
    if needsLedger || !isMissing { settings.ledger = try existing().ledger }
    settings.scope = scope ?? PathScope(directory: directory, ledger: settings.ledger)
    return try await Downloader.reading(settings)
  }
}

/// Which paths of a ledger a command may use.
struct OutsideOptions: ParsableArguments {
  @Flag(
    help: ArgumentHelp(
      """
      Allow paths of the ledger outside the folder, as after “get --move-into”. Use it only with your own ledger, which \
      can name any file that you can write.
      """))
  var allowOutside = false

  func scope(directory: String, ledger: LedgerLocation) -> PathScope {
    allowOutside ? .everywhere : PathScope(directory: directory, ledger: ledger)
  }
}

/// How files are fetched.
struct TransferOptions: ParsableArguments {
  @Option(name: [.short, .long], help: ArgumentHelp("Download this many files at once.", valueName: "n"))
  var jobs = 5

  @Option(
    help: ArgumentHelp(
      "Open this many connections to one host at most, for all files together (default: as --jobs, at least 4; no limit "
        + "with --segments).", valueName: "n"))
  var perHost: Int?

  @Option(
    help: ArgumentHelp(
      "Download at this speed at most, all files together, such as 500k or 2M (1024-based, as for curl).",
      valueName: "speed"),
    transform: SpeedLimit.rate)
  var limitRate: ByteRate?

  @Option(
    help: ArgumentHelp(
      "Apply --limit-rate during this part of each day only, in the local time zone, such as 08:00-18:00.",
      valueName: "HH:MM-HH:MM"))
  var limitRateDuring: GateSettings.Window?

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Fetch each file over this many connections; 1 for a single one (default: as many as raise the speed, up to 4, "
        + "for files from 32 MiB).", valueName: "n"))
  var segments: Int?

  @Option(help: ArgumentHelp("Retry this many times after a failure without progress.", valueName: "n"))
  var retry = 4

  @Option(help: ArgumentHelp("Stop connecting after this time (default: 30).", valueName: "seconds"))
  var connectTimeout: Double?

  @Option(
    help: ArgumentHelp(
      "End an attempt after this time, including the transfer (default: no limit).", valueName: "seconds"))
  var timeout: Double?

  @Option(help: ArgumentHelp("Choose what happens if the file exists.", valueName: "policy"))
  var onConflict = ConflictPolicy.keepBoth

  @Option(help: ArgumentHelp("Choose the HTTP client.", valueName: "client"))
  var source = PipelineSettings.Transport.standard

  func validate() throws {
    func check(_ value: Int, _ option: String, _ range: ClosedRange<Int>) throws {
      guard !range.contains(value) else { return }
      throw ValidationError("\(option) must be a number from \(range.lowerBound) to \(range.upperBound)")
    }
    try check(jobs, "--jobs", 1...10_000)
    try check(perHost ?? 1, "--per-host", 1...10_000)
    try check(segments ?? 1, "--segments", 1...32)
    try check(retry, "--retry", 0...1000)
    for (value, option) in [(connectTimeout, "--connect-timeout"), (timeout, "--timeout")] {
      guard let value, !(value >= 0.001 && value <= 1e9) else { continue }
      throw ValidationError("\(option) must be a number of seconds, such as 30 or 2.5")
    }
    if limitRateDuring != nil, limitRate == nil {
      throw ValidationError("--limit-rate-during needs --limit-rate: the speed that applies during these hours")
    }
  }

  func settings(directory: String, ledger: LedgerLocation?) -> PipelineSettings {
    var settings = PipelineSettings(
      transport: source, connectTimeLimit: connectTimeout.map { .seconds($0) },
      timeLimit: timeout.map { .seconds($0) }, perHost: perHost,
      connections: segments, rateLimit: limitRate.map { RateLimit($0, during: limitRateDuring?.daily) },
      retries: retry, directory: directory,
      conflict: onConflict, ledger: ledger)
    settings.limitJobs(to: jobs)
    return settings
  }
}

/// How a command shows what it does.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print one JSON object on each line.")
  var json = false

  @Flag(name: [.short, .long], help: "Print errors only; with --json, only the result of each file.")
  var quiet = false

  @OptionGroup var urls: URLOptions

  var choice: OutputChoice { OutputChoice(isJSON: json, isQuiet: quiet, urls: urls.style) }
}

/// How a command shows URLs.
struct URLOptions: ParsableArguments {
  @Flag(
    name: .customLong("show-urls"),
    help: ArgumentHelp(
      "Show URLs as they were given, with passwords and the values of queries. Messages about errors have none of these."
    ))
  var showsURLs = false

  var style: URLStyle { URLStyle(isWhole: showsURLs) }
}
