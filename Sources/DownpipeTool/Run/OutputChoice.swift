import Foundation

/// Chooses how a command shows what it does.
struct OutputChoice: Sendable, Hashable {
  var isJSON = false
  var isQuiet = false
  var urls = URLStyle()
  /// Whether standard error is a terminal that can move its cursor and show the characters of bars.
  var hasTerminal: Bool
  var outputIsTerminal: Bool

  init(
    isJSON: Bool, isQuiet: Bool, urls: URLStyle = URLStyle(),
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) {
    self.isJSON = isJSON
    self.isQuiet = isQuiet
    self.urls = urls
    hasTerminal =
      OutputFile.standardError.isTerminal && environment["TERM"] != "dumb" && Self.canShowBars(environment)
    outputIsTerminal = OutputFile.standardOutput.isTerminal
  }

  /// Whether the locale names no charset other than UTF-8. The locale of characters is the first of these variables that
  /// is not empty (POSIX.1-2024, XBD 8.2); `C`, and none, name no charset.
  static func canShowBars(_ environment: [String: String]) -> Bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
    let parts = locale.split(separator: "@").first?.split(separator: ".", maxSplits: 1) ?? []
    guard parts.count == 2 else { return true }
    return ["utf-8", "utf8"].contains(parts[1].lowercased())
  }

  var drawsBars: Bool { hasTerminal && !isJSON && !isQuiet }

  func make(environment: [String: String] = ProcessInfo.processInfo.environment) -> any RunOutput & Sendable {
    if isJSON { return JSONOutput(isQuiet: isQuiet, urls: urls) }
    guard drawsBars else { return PlainOutput(isQuiet: isQuiet, urls: urls) }
    // The bars are on standard error. Where standard output leads elsewhere, it gets its plain lines.
    let plain = outputIsTerminal ? nil : PlainOutput(isQuiet: false, urls: urls, errors: nil)
    // See no-color.org.
    return BoardOutput(hasColor: environment["NO_COLOR"]?.isEmpty ?? true, urls: urls, plain: plain)
  }
}
