import ArgumentParser
import Downpipe

/// What to download, and what to do with it.
struct GetOptions: ParsableArguments {
  @Argument(help: ArgumentHelp("The URLs to download.", valueName: "url"))
  var urls: [String] = []

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Read URLs from this file, one on each line; “-” is standard input. More URLs of the same file follow on its line, "
        + "separated by tabs. Blank lines and lines that start with # are skipped.", valueName: "file"),
    completion: .file())
  var inputFile: String?

  @Option(
    help: ArgumentHelp(
      "Fetch the file from this URL as well; repeat it for several (one file only). --header, --user and --bearer are "
        + "for the first URL's server only.", valueName: "url"))
  var mirror: [String] = []

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("Save the file under this name (one URL only).", valueName: "name"))
  var outputName: String?

  @Option(
    name: [.customShort("H"), .long],
    help: ArgumentHelp("Send this header field. The ledger stores it.", valueName: "name: value"))
  var header: [String] = []

  @Option(
    name: [.customShort("A"), .long], help: ArgumentHelp("Send this User-Agent to the server.", valueName: "name"))
  var userAgent: String?

  @Option(name: [.customShort("e"), .long], help: ArgumentHelp("Send this Referer to the server.", valueName: "url"))
  var referer: String?

  @Option(
    help: ArgumentHelp(
      "Require this digest, such as sha256=<64 digits> (one URL only).", valueName: "algorithm=hex"))
  var checksum: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Start these files before or after others of the ledger: high, normal, low, or a number (high is 100, low is "
        + "-100).", valueName: "priority"),
    transform: Priority.parse)
  var priority: Priority?

  @Flag(
    help: ArgumentHelp(
      "The URLs, which may be paths of local files, are those of Metalink documents (RFC 5854, and version 3): download "
        + "the files that they name, with their mirrors, sizes and digests, below the folder. --header, --user and the "
        + "others are for the documents: the places that they name get no credentials."))
  var metalink = false

  @Flag var refresh: RefreshOption?

  @Flag(
    help: ArgumentHelp(
      "Show names and sizes only: downloads nothing and creates no files. Asks each server for the first byte."))
  var dryRun = false

  /// - Throws: ``UsageError`` for options that contradict each other.
  func plan() throws(UsageError) -> GetPlan {
    try GetPlan(
      urls: urls, inputFile: inputFile, outputName: outputName, header: header, userAgent: userAgent,
      referer: referer, checksum: checksum, mirrors: mirror, priority: priority ?? .normal,
      refresh: refresh?.policy ?? .never, isMetalink: metalink)
  }
}

/// What the command does with files that an earlier one has finished.
enum RefreshOption: String, EnumerableFlag {
  case refresh
  case refreshStale

  var policy: DownloadRequest.Refresh {
    switch self {
    case .refresh: .ifChanged
    case .refreshStale: .whenStale
    }
  }

  static func help(for value: RefreshOption) -> ArgumentHelp? {
    switch value {
    case .refresh:
      "Ask the server whether finished files have changed, and fetch those that have. Each stays until the new one is complete."
    case .refreshStale:
      "As --refresh, but leave out files that are still fresh by the server's Cache-Control or Expires."
    }
  }
}
