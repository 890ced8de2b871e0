import Foundation

/// How a command tells what it does.
struct OutputChoice: Sendable, Hashable {
  /// Whether it is for programs.
  var isJSON = false
  /// Whether only the worst is told.
  var isQuiet = false
  /// Whether standard error is a terminal that can move its cursor.
  var hasTerminal: Bool
  /// Whether standard output is a terminal.
  var outputIsTerminal: Bool

  init(isJSON: Bool, isQuiet: Bool, environment: [String: String] = ProcessInfo.processInfo.environment) {
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    hasTerminal = OutputFile.standardError.isTerminal && environment["TERM"] != "dumb"
    outputIsTerminal = OutputFile.standardOutput.isTerminal
  }

  /// Whether bars are drawn.
  var drawsBars: Bool { hasTerminal && !isJSON && !isQuiet }

  /// The output.
  func make(environment: [String: String] = ProcessInfo.processInfo.environment) -> any RunOutput & Sendable {
    if isJSON { return JSONOutput(isQuiet: isQuiet) }
    guard drawsBars else { return PlainOutput(isQuiet: isQuiet) }
    // The bars are on standard error; what is piped on gets its plain lines. Failures are shown above the bars.
    let plain = outputIsTerminal ? nil : PlainOutput(isQuiet: false, complains: false)
    return BarsOutput(style: ProgressRenderer.Style(environment: environment), plain: plain)
  }
}
