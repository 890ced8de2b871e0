import Downpipe
import DownpipeJSON
import Foundation

/// One JSON object a line on standard output: `state` for a new state or another reason to wait, `progress` as bytes
/// arrive, `notice` for what one should know although it ends nothing, and at the end of each download `finished` or
/// `failed`.
struct JSONOutput: RunOutput {
  private let output: OutputFile
  private let isQuiet: Bool
  private let urls: URLStyle
  private var lines = ""

  /// - Parameter isQuiet: Leaves out `state` and `progress`.
  init(isQuiet: Bool, urls: URLStyle = URLStyle(), output: OutputFile = .standardOutput) {
    self.isQuiet = isQuiet
    self.urls = urls
    self.output = output
  }

  mutating func show(_ status: DownloadStatus, isNews: Bool) {
    if isQuiet || status.state.phase == .waiting && !isNews { return }
    let url = urls.text(status.request.givenURL)
    lines += (isNews ? StatusLine.state(status, url: url) : StatusLine.progress(status, url: url)) + "\n"
  }

  mutating func show(_ result: DownloadResult) { lines += Self.line(result, urls) + "\n" }

  mutating func show(_ notice: DownloadNotice) {
    let object: JSONObject = [
      "event": "notice", "id": notice.id.rawValue, "url": urls.text(notice.url),
      "notice": StatusLine.error(notice.error),
    ]
    lines += object.json + "\n"
  }

  mutating func flush(_ tally: Tally, at now: Date) throws {
    defer { lines = "" }
    try output.write(lines)
  }

  mutating func end(_ tally: Tally, at now: Date) throws { try flush(tally, at: now) }

  static func line(_ result: DownloadResult, _ urls: URLStyle = URLStyle()) -> String {
    var object: JSONObject = [
      "event": result.isFinished ? "finished" : "failed", "id": result.id.rawValue, "url": urls.text(result.url),
      "path": result.path, "bytes": result.bytes, "attempts": result.attempts, "resumedFrom": result.resumedFrom,
      "bytesFetched": result.bytesFetched, "error": result.error.map(StatusLine.error),
    ]
    if !result.verified.isEmpty { object.add("verified", result.verified.map(StatusLine.verified)) }
    if result.isEndUnconfirmed { object.add("end", "unconfirmed") }
    return object.json
  }
}
