import Downpipe
import Foundation

/// A line on standard output for each download that is over, what went wrong on standard error.
///
/// The columns are separated by tabs: `finished`, path, bytes; or `failed`, URL, error code.
struct PlainOutput: RunOutput {
  private let output: OutputFile
  private let errors: OutputFile
  private let isQuiet: Bool
  private let complains: Bool
  private var lines = ""
  private var complaints = ""

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

  func show(_ status: DownloadStatus) {}

  mutating func show(_ word: LastWord) {
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

  /// What went wrong, in a sentence.
  static func complaint(_ word: LastWord) -> String {
    guard let error = word.error else { return "" }
    let stage = error.stage.map { "\($0): " } ?? ""
    let attempts = word.attempts > 1 ? " (after \(word.attempts) attempts)" : ""
    return DisplayWidth.harmless("\(word.url): \(stage)\(error.message)\(attempts)")
  }
}
