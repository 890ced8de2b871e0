import Downpipe
import Foundation

/// A line on standard output for each download that is over; on standard error what went wrong, and what a download
/// waits for that does not go on by itself.
///
/// The columns are separated by tabs: `finished`, path, bytes; or `failed`, URL, error code. URLs are without secrets.
struct PlainOutput: RunOutput {
  private let output: OutputFile
  private let errors: OutputFile
  private let isQuiet: Bool
  private let complains: Bool
  private var lines = ""
  private var complaints = ""
  private var news = StateNews()

  /// - Parameters:
  ///   - isQuiet: nothing on standard output.
  ///   - complains: whether errors are told; somebody else does it otherwise.
  init(
    isQuiet: Bool, complains: Bool = true, output: OutputFile = .standardOutput, errors: OutputFile = .standardError
  ) {
    self.isQuiet = isQuiet
    self.complains = complains
    self.output = output
    self.errors = errors
  }

  mutating func show(_ status: DownloadStatus) {
    guard !isQuiet, complains, news.isNews(status), let wait = Self.wait(status) else { return }
    complaints += "downpipe: \(wait)\n"
  }

  mutating func show(_ word: LastWord) {
    news.forget(word.id)
    if !isQuiet { lines += Self.line(word) + "\n" }
    if complains, word.error != nil { complaints += "downpipe: \(Self.complaint(word))\n" }
  }

  mutating func flush(_ tally: Tally, at now: Date) throws {
    defer {
      lines = ""
      complaints = ""
    }
    try output.write(lines)
    try errors.write(complaints)
  }

  mutating func end(_ tally: Tally, at now: Date) throws {
    try flush(tally, at: now)
    if tally.failed > 0, tally.total > 1, !isQuiet, complains {
      try errors.write("downpipe: \(tally.finished) of \(tally.total) finished, \(tally.failed) failed\n")
    }
  }

  /// The line of a download that is over, without the line's end.
  static func line(_ word: LastWord) -> String {
    let columns =
      if let error = word.error {
        ["failed", word.url, error.code.rawValue]
      } else {
        ["finished", word.path ?? "–", String(word.bytes)]
      }
    return columns.map(DisplayWidth.harmless).joined(separator: "\t")
  }

  /// What a download waits for, and until when, in a sentence; `nil` for one that only waits for a free place.
  static func wait(_ status: DownloadStatus) -> String? {
    guard let reason = status.waitsBeyondItsTurn else { return nil }
    let until = reason.until.map { " until \(Formatting.time($0))" } ?? ""
    return DisplayWidth.harmless("\(status.request.shownURL): waits\(until): \(reason.description)")
  }

  /// What went wrong, in a sentence.
  static func complaint(_ word: LastWord) -> String {
    guard let error = word.error else { return "" }
    let stage = error.stage.map { "\($0): " } ?? ""
    let attempts = word.attempts > 1 ? " (after \(word.attempts) attempts)" : ""
    return DisplayWidth.harmless("\(word.url): \(stage)\(error.message)\(attempts)")
  }
}
