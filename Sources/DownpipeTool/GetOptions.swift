import ArgumentParser

/// What is downloaded, and what is done with it.
struct GetOptions: ParsableArguments {
  @Argument(help: ArgumentHelp("What to download.", valueName: "url"))
  var urls: [String] = []

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "A file with a URL a line; “-” is standard input. Blank lines and lines with # are skipped.",
      valueName: "file"),
    completion: .file())
  var inputFile: String?

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The name of the file (with one URL).", valueName: "name"))
  var outputName: String?

  @Option(
    name: [.customShort("H"), .long],
    help: ArgumentHelp(
      "A header field to send, such as 'Accept: text/html'. It is kept in the ledger.", valueName: "name: value"))
  var header: [String] = []

  @Option(
    help: ArgumentHelp("The digest the file must have, such as sha256=9f86… (with one URL).", valueName: "alg=hex"))
  var checksum: String?

  @Flag(help: "Unpack gzip files.")
  var gunzip = false

  @Option(help: ArgumentHelp("Move finished files into this folder.", valueName: "dir"), completion: .directory)
  var moveInto: String?

  /// What is asked for, checked.
  func plan() throws(UsageError) -> GetPlan {
    try GetPlan(urls: urls, inputFile: inputFile, outputName: outputName, header: header, checksum: checksum)
  }
}
