import Downpipe

/// The arguments of the most frequent commands: URLs, or a list of them, with the options that need no judgement.
///
/// The parser looks up the protocols of every type of option, in thousands of records each, which takes longer than the
/// connection to a server. What is not understood here, such as an abbreviation or a wrong value, is left to it entirely,
/// with its messages; a test compares the two.
struct QuickGet: Sendable {
  private(set) var urls: [String] = []
  private(set) var inputFile: String?
  private(set) var directory: String?
  private(set) var jobs: Int?
  private(set) var isQuiet = false
  private(set) var isJSON = false

  /// - Returns: `nil` for arguments that the parser must read.
  init?(_ arguments: [String]) {
    var rest = arguments[...]
    let isNamed = rest.first == "get"
    if isNamed { rest.removeFirst() }
    while let argument = rest.popFirst() {
      switch argument {
      case "-q", "--quiet": isQuiet = true
      case "--json": isJSON = true
      case "-i", "--input-file":
        guard inputFile == nil, let value = Self.value(&rest) else { return nil }
        inputFile = value
      case "-d", "--directory":
        guard directory == nil, let value = Self.value(&rest) else { return nil }
        directory = value
      case "-j", "--jobs":
        guard jobs == nil, let value = Self.value(&rest).flatMap({ Int($0) }), (1...10_000).contains(value) else {
          return nil
        }
        jobs = value
      default:
        // Without its name, a command may be another one, or a mistyped one.
        guard !argument.hasPrefix("-"), isNamed || argument.contains("://") else { return nil }
        urls.append(argument)
      }
    }
    if urls.isEmpty, inputFile == nil { return nil }
  }

  /// The value of an option; `nil` for what may be another option.
  private static func value(_ rest: inout ArraySlice<String>) -> String? {
    guard let value = rest.popFirst(), !value.isEmpty, !value.hasPrefix("-") else { return nil }
    return value
  }

  /// - Throws: ``UsageError`` for a URL or a path that cannot be used.
  func prepared() throws -> GetRun {
    let plan = try GetPlan(urls: urls, inputFile: inputFile)
    let list = try plan.inputFile.map(URLList.init)
    let output = OutputChoice(isJSON: isJSON, isQuiet: isQuiet)
    try GetRun.checkSingle(plan, output)
    let place = Place(directory: directory ?? ".")
    let directory = try Folder.prepare(place.directory, option: "--directory")
    let ledger = try place.usableLocation(directory: directory)
    var settings = PipelineSettings(directory: directory, ledger: ledger)
    settings.limitJobs(to: jobs ?? settings.jobs)
    settings.scope = PathScope(directory: directory, ledger: ledger)
    return GetRun(plan: plan, list: list, settings: settings, output: output)
  }

  private struct Place: LedgerPlace {
    let directory: String
    let ledger: String? = nil
  }
}
