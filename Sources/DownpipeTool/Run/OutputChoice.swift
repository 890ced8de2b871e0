import Foundation

/// Chooses how a command shows what it does.
struct OutputChoice: Sendable, Hashable {
  var isJSON = false
  var isQuiet = false
  /// Whether standard error is a terminal that can move its cursor.
  var hasTerminal: Bool
  var outputIsTerminal: Bool

  init(isJSON: Bool, isQuiet: Bool, environment: [String: String] = ProcessInfo.processInfo.environment) {
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    hasTerminal = OutputFile.standardError.isTerminal && environment["TERM"] != "dumb"
    outputIsTerminal = OutputFile.standardOutput.isTerminal
  }

  var drawsBars: Bool { hasTerminal && !isJSON && !isQuiet }

  func make(environment: [String: String] = ProcessInfo.processInfo.environment) -> any RunOutput & Sendable {
    if isJSON { return JSONOutput(isQuiet: isQuiet) }
    guard drawsBars else { return PlainOutput(isQuiet: isQuiet) }
    // The bars are on standard error. Where standard output leads elsewhere, it gets its plain lines.
    let plain = outputIsTerminal ? nil : PlainOutput(isQuiet: false, errors: nil)
    return BoardOutput(style: BoardLayout.Style(environment: environment), plain: plain)
  }
}
