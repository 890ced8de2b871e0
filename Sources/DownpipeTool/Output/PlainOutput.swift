import Downpipe
import DownpipeJSON
import Foundation

/// A line on standard output for each download that has ended; failures, and reasons to wait, on standard error.
///
/// The columns are separated by tabs: `finished`, path, bytes; or `failed`, URL, error code, id.
struct PlainOutput: RunOutput {
  private let output: OutputFile
  private let errors: OutputFile?
  private let isQuiet: Bool
  private let urls: URLStyle
  private var lines = ""
  private var messages = ""

  /// - Parameters:
  ///   - isQuiet: Leaves only failures.
  ///   - errors: `nil` where another output shows failures and reasons to wait.
  init(
    isQuiet: Bool, urls: URLStyle = URLStyle(), output: OutputFile = .standardOutput,
    errors: OutputFile? = .standardError
  ) {
    self.urls = urls
    self.isQuiet = isQuiet
    self.output = output
    self.errors = errors
  }

  mutating func show(_ status: DownloadStatus, isNews: Bool) {
    if !isQuiet, isNews, let message = Self.message(waiting: status, urls) { messages += "downpipe: \(message)\n" }
  }

  mutating func show(_ result: DownloadResult) {
    if !isQuiet { lines += Self.line(result, urls) + "\n" }
    if let message = Self.message(failed: result, urls) { messages += "downpipe: \(message)\n" }
  }

  mutating func show(_ notice: DownloadNotice) { messages += "downpipe: \(Self.message(notice, urls))\n" }

  mutating func flush(_ tally: Tally, at now: Date) throws {
    defer { (lines, messages) = ("", "") }
    try output.write(lines)
    try errors?.write(messages)
  }

  mutating func end(_ tally: Tally, at now: Date) throws {
    if tally.failed > 0, tally.total > 1, !isQuiet {
      messages += "downpipe: \(tally.finished) of \(tally.total) finished, \(tally.failed) failed\n"
    }
    try flush(tally, at: now)
  }

  static func line(_ result: DownloadResult, _ urls: URLStyle = URLStyle()) -> String {
    let finished = ["finished", result.path ?? "–", String(result.bytes)]
    let columns =
      result.error.map { ["failed", urls.text(result.url), $0.code.rawValue, result.id.rawValue] } ?? finished
    return columns.map(\.harmless).joined(separator: "\t")
  }

  /// What a download waits for and until when, in local time; `nil` where it waits for its turn only.
  static func message(
    waiting status: DownloadStatus, _ urls: URLStyle = URLStyle(), in zone: TimeZone = .current
  ) -> String? {
    guard let reason = status.hindrance else { return nil }
    let until = reason.until.map { " until \($0.shown(in: zone))" } ?? ""
    return "\(urls.label(status.request.givenURL, status.id)): waiting\(until): \(reason)".harmless
  }

  static func message(_ notice: DownloadNotice, _ urls: URLStyle = URLStyle()) -> String {
    "\(urls.label(notice.url, notice.id)): \(notice.error.message)".harmless
  }

  /// Why a download failed; `nil` for one that finished.
  static func message(failed result: DownloadResult, _ urls: URLStyle = URLStyle()) -> String? {
    guard let error = result.error else { return nil }
    let attempts = result.attempts > 1 ? " (after \(result.attempts) attempts)" : ""
    return "\(urls.label(result.url, result.id)): \(error.sentence)\(attempts)".harmless
  }
}
