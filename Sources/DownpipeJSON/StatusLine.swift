package import DownpipeCore
package import Foundation

/// The objects of `--json` for a download that runs or waits. URLs are given without secrets.
package enum StatusLine {
  /// A new state, or another reason to wait.
  package static func state(_ status: DownloadStatus, url: String) -> String {
    var object: JSONObject = [
      "event": "state", "id": status.id.rawValue, "url": url, "state": status.state.phase.rawValue,
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
    if let error = status.error { object.add("error", Self.error(error)) }
    return object.json
  }

  /// The progress of a transfer.
  package static func progress(_ status: DownloadStatus, url: String) -> String {
    let progress = status.progress
    let object: JSONObject = [
      "event": "progress", "id": status.id.rawValue, "url": url, "bytes": progress.received,
      "total": progress.total.bytes, "bytesPerSecond": progress.bytesPerSecond.flatMap { Int64(exactly: $0.rounded()) },
      "secondsRemaining": progress.timeRemaining?.components.seconds,
    ]
    return object.json
  }

  /// A digest that was compared with the file; its digits are null if the digests of pieces were.
  package static func verified(_ digest: VerifiedDigest) -> JSONObject {
    ["algorithm": digest.algorithm.name, "digest": digest.digest?.hex, "source": digest.origin.rawValue]
  }

  package static func error(_ error: DownloadError) -> JSONObject {
    var object: JSONObject = ["code": error.code.rawValue, "stage": error.stage, "message": error.message]
    if let status = error.httpStatus { object.add("httpStatus", status) }
    return object
  }
}

extension WaitingReason {
  /// When the next attempt starts at the latest.
  package var until: Date? {
    switch self {
    case .retry(let date, _), .missing(_, let date, _): date
    default: nil
    }
  }
}
