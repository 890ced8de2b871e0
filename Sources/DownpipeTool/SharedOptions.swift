import ArgumentParser
import Downpipe
import Foundation

/// Which folder, and which ledger.
struct LedgerOptions: ParsableArguments {
  @Option(
    name: [.short, .long], help: ArgumentHelp("The folder that files go to.", valueName: "dir"),
    completion: .directory)
  var directory = "."

  @Option(
    help: ArgumentHelp(
      "The file that keeps what is done and what is left (default: DIR/.downpipe/ledger.sqlite), or “none”.",
      valueName: "path"),
    completion: .file())
  var ledger: String?

  /// The absolute path of the ledger of a folder; `nil` for none.
  func ledgerPath(directory: String) -> String? {
    switch ledger {
    case "none": nil
    case let path?: Folder.absolutePath(path)
    case nil: directory + "/.downpipe/ledger.sqlite"
    }
  }

  /// The folder and the ledger of a command that works on what is there already.
  func existing() throws(UsageError) -> (directory: String, ledger: String) {
    let directory = Folder.absolutePath(directory)
    guard Folder.kind(directory) == .directory else {
      throw UsageError("there is no folder “\(self.directory)”: choose it with --directory")
    }
    guard let ledger = ledgerPath(directory: directory) else {
      throw UsageError("--ledger none keeps nothing to work on: name the file of a ledger")
    }
    guard Folder.kind(ledger) == .file else {
      throw UsageError("there is no ledger at “\(ledger)”: choose it with --directory or --ledger")
    }
    return (directory, ledger)
  }

  /// A downloader that starts nothing, for as long as `body` runs: to list, and to remove.
  ///
  /// - Parameters:
  ///   - needsLedger: whether a ledger that is missing is an error; otherwise it knows nothing.
  ///   - scope: where files may be that are removed or moved; the folder and that of the ledger when `nil`.
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
    let directory = Folder.absolutePath(directory)
    let isMissing =
      Folder.kind(directory) == .directory && ledgerPath(directory: directory).map(Folder.kind) == .some(nil)
    var settings = PipelineSettings(directory: directory, showsAll: true)
    if needsLedger || !isMissing { settings.ledger = try existing().ledger }
    settings.scope = scope ?? PathScope(directory: directory, ledger: settings.ledger)
    #if !SQLite
      if let path = settings.ledger {
        throw UsageError("this downpipe was built without SQLite, and cannot read “\(path)”")
      }
    #endif
    do {
      return try await Downloader(Pipeline(settings), options: DownloaderOptions(startsSuspended: true))
    } catch let error as DownloadError {
      throw UsageError(error.sentence)
    }
  }
}

/// What a ledger may name beyond the folder it belongs to.
struct OutsideOptions: ParsableArguments {
  @Flag(
    help: ArgumentHelp(
      "Obey the ledger where it names paths outside of the folder, as after “get --move-into”.",
      discussion: "Only for a ledger that you have made: it may name any file that you can write."))
  var allowOutside = false

  /// Where paths that come out of a ledger may lead.
  func scope(directory: String, ledger: String) -> PathScope {
    allowOutside ? .everywhere : PathScope(directory: directory, ledger: ledger)
  }
}

/// How files are fetched.
struct TransferOptions: ParsableArguments {
  @Option(name: [.short, .long], help: ArgumentHelp("How many files at once.", valueName: "n"))
  var jobs = 5

  @Option(help: ArgumentHelp("How many files at once from one host (default: as many as in all).", valueName: "n"))
  var perHost: Int?

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Connections for each file. Accepted already, but every file has one connection until segments are built.",
      valueName: "n"))
  var segments = 1

  @Option(help: ArgumentHelp("How often a failure is tried again without progress.", valueName: "n"))
  var retry = 4

  @Option(
    help: ArgumentHelp("A proxy, such as http://host:3128 or socks5://host:1080.", valueName: "url"))
  var proxy: String?

  @Option(help: "What to do when a file of that name is there.")
  var onConflict = ConflictPolicy.keepBoth

  @Option(help: "What fetches: AsyncHTTPClient, or Foundation's URLSession.")
  var source = PipelineSettings.Transport.http

  /// Checks the numbers.
  func validate() throws {
    func check(_ value: Int, _ option: String, _ range: ClosedRange<Int>) throws {
      guard !range.contains(value) else { return }
      throw ValidationError("\(option) must be a number from \(range.lowerBound) to \(range.upperBound)")
    }
    try check(jobs, "--jobs", 1...1000)
    try check(perHost ?? 1, "--per-host", 1...1000)
    try check(segments, "--segments", 1...64)
    try check(retry, "--retry", 0...1000)
    if proxy != nil, source == .urlSession {
      throw ValidationError("--proxy works with --source http only")
    }
  }

  /// The settings for a folder and a ledger.
  func settings(directory: String, ledger: String?) -> PipelineSettings {
    PipelineSettings(
      transport: source, proxy: proxy, jobs: jobs, perHost: perHost, retries: retry, directory: directory,
      conflict: onConflict, ledger: ledger)
  }
}

/// How it is told.
struct OutputOptions: ParsableArguments {
  @Flag(help: "One JSON object a line on standard output.")
  var json = false

  @Flag(name: [.short, .long], help: "Only errors; with --json, only the last word on each file.")
  var quiet = false

  /// The choice.
  var choice: OutputChoice { OutputChoice(isJSON: json, isQuiet: quiet) }
}

extension PipelineSettings.Transport: ExpressibleByArgument {}
