import Downpipe
import Foundation

/// One JSON object a line on standard output: `state` for a new state or another reason to wait, `progress` as bytes
/// arrive, `notice` for what one should know although it ends nothing, and at the end of each download `finished` or
/// `failed`. URLs are without secrets.
struct JSONOutput: RunOutput {
  private let output: OutputFile
  private let isQuiet: Bool
  private var lines = ""

  /// - Parameter isQuiet: Leaves out `state` and `progress`.
  init(isQuiet: Bool, output: OutputFile = .standardOutput) {
    self.isQuiet = isQuiet
    self.output = output
  }

  mutating func show(_ status: DownloadStatus, isNews: Bool) {
    if isQuiet || status.state.phase == .waiting && !isNews { return }
    lines += (isNews ? Self.stateLine(status) : Self.progressLine(status)) + "\n"
  }

  mutating func show(_ result: DownloadResult) { lines += Self.line(result) + "\n" }

  mutating func show(_ notice: DownloadNotice) {
    let object: JSONObject = [
      "event": "notice", "id": notice.id.rawValue, "url": notice.url, "notice": Self.object(notice.error),
    ]
    lines += object.json + "\n"
  }

  mutating func flush(_ tally: Tally, at now: Date) throws {
    defer { lines = "" }
    try output.write(lines)
  }

  mutating func end(_ tally: Tally, at now: Date) throws { try flush(tally, at: now) }

  static func stateLine(_ status: DownloadStatus) -> String {
    var object: JSONObject = [
      "event": "state", "id": status.id.rawValue, "url": status.request.shownURL, "state": status.state.phase.rawValue,
    ]
    switch status.state {
    case .waiting(let reason):
      object.add("reason", reason.description)
      if let until = reason.until { object.add("until", until.formatted(.iso8601)) }
    case .processing(let step):
      object.add("step", step)
      object.add("stepBytes", status.stepProgress?.completed)
      object.add("stepTotal", status.stepProgress?.total.bytes)
      object.add("stepItems", status.stepProgress?.items)
    default: break
    }
    object.add("bytes", status.progress.received)
    object.add("total", status.progress.total.bytes)
    object.add("attempts", status.attempts)
    object.add("resumedFrom", status.resumedFrom)
    if let error = status.error { object.add("error", Self.object(error)) }
    return object.json
  }

  static func progressLine(_ status: DownloadStatus) -> String {
    let progress = status.progress
    let object: JSONObject = [
      "event": "progress", "id": status.id.rawValue, "url": status.request.shownURL, "bytes": progress.received,
      "total": progress.total.bytes, "bytesPerSecond": progress.bytesPerSecond.flatMap { Int64(exactly: $0.rounded()) },
      "secondsRemaining": progress.timeRemaining?.components.seconds,
    ]
    return object.json
  }

  static func line(_ result: DownloadResult) -> String {
    let object: JSONObject = [
      "event": result.isFinished ? "finished" : "failed", "id": result.id.rawValue, "url": result.url,
      "path": result.path, "bytes": result.bytes, "attempts": result.attempts, "resumedFrom": result.resumedFrom,
      "bytesFetched": result.bytesFetched, "error": result.error.map(object),
    ]
    return object.json
  }

  static func object(_ error: DownloadError) -> JSONObject {
    var object: JSONObject = ["code": error.code.rawValue, "stage": error.stage, "message": error.message]
    if let status = error.httpStatus { object.add("httpStatus", status) }
    return object
  }
}
