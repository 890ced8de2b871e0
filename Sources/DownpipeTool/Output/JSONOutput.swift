import Downpipe
import Foundation

/// One JSON object a line on standard output.
///
/// While a download is under way: `state` when it goes into another state or waits for something else, with the time of
/// the next attempt as `until` (RFC 3339) where there is one; `progress` as bytes arrive. URLs are without secrets.
/// The last word on each is `finished` or `failed`, with every key there and `null` where there is nothing to say.
struct JSONOutput: RunOutput {
  private let output: OutputFile
  private let isQuiet: Bool
  private var lines = ""
  private var news = StateNews()

  /// - Parameter isQuiet: only the last words.
  init(isQuiet: Bool, output: OutputFile = .standardOutput) {
    self.isQuiet = isQuiet
    self.output = output
  }

  mutating func show(_ status: DownloadStatus) {
    guard !isQuiet else { return }
    // Two thousand that wait for their turn are no news.
    if status.state.phase == .waiting, status.waitsBeyondItsTurn == nil, !news.knows(status.id) { return }
    if news.isNews(status) {
      lines += Self.stateLine(status) + "\n"
    } else if status.state.phase != .waiting {
      lines += Self.progressLine(status) + "\n"
    }
  }

  mutating func show(_ word: LastWord) {
    news.forget(word.id)
    lines += Self.line(word) + "\n"
  }

  mutating func flush(_ tally: Tally, at now: Date) throws {
    defer { lines = "" }
    try output.write(lines)
  }

  mutating func end(_ tally: Tally, at now: Date) throws { try flush(tally, at: now) }

  /// The line of a download that went into another state.
  static func stateLine(_ status: DownloadStatus) -> String {
    var object = JSONObject()
    object.add("event", "state")
    object.add("id", status.id.rawValue)
    object.add("url", status.request.shownURL)
    object.add("state", status.state.phase.rawValue)
    switch status.state {
    case .waiting(let reason):
      object.add("reason", reason.description)
      if let date = reason.until { object.add("until", Formatting.timestamp(date)) }
    case .processing(let step): object.add("step", step)
    default: break
    }
    object.add("bytes", status.progress.received)
    object.add("total", status.progress.total.bytes)
    object.add("attempts", status.attempts)
    object.add("resumedFrom", status.resumedFrom)
    if let error = status.error { object.add("error", Self.object(error)) }
    return object.closed
  }

  /// The line of a download whose bytes arrive.
  static func progressLine(_ status: DownloadStatus) -> String {
    var object = JSONObject()
    object.add("event", "progress")
    object.add("id", status.id.rawValue)
    object.add("url", status.request.shownURL)
    object.add("bytes", status.progress.received)
    object.add("total", status.progress.total.bytes)
    object.add("bytesPerSecond", status.progress.bytesPerSecond.flatMap { Int64(exactly: $0.rounded()) })
    object.add("secondsRemaining", status.progress.timeRemaining.map { $0.components.seconds })
    return object.closed
  }

  /// The line of a download that is over.
  static func line(_ word: LastWord) -> String {
    var object = JSONObject()
    object.add("event", word.isFinished ? "finished" : "failed")
    object.add("id", word.id.rawValue)
    object.add("url", word.url)
    object.add("path", word.path)
    object.add("bytes", word.bytes)
    object.add("attempts", word.attempts)
    object.add("resumedFrom", word.resumedFrom)
    object.add("bytesFetched", word.bytesFetched)
    object.add("error", word.error.map(Self.object))
    return object.closed
  }

  /// An error.
  static func object(_ error: DownloadError) -> JSONObject {
    var object = JSONObject()
    object.add("code", error.code.rawValue)
    object.add("stage", error.stage)
    object.add("message", error.message)
    if let status = error.httpStatus { object.add("httpStatus", status) }
    return object
  }
}
