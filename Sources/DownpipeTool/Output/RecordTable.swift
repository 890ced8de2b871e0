import Downpipe
import DownpipeJSON
import Foundation

/// The records of a ledger as rows of a table, or as JSON.
enum RecordTable {
  static let heading = row("ID", "STATE", "DONE", "SIZE", "NAME")

  /// - Parameter reason: why a waiting download has to wait, where that is known.
  static func row(_ download: DownloadStatus, _ urls: URLStyle = URLStyle(), reason: String? = nil) -> String {
    let progress = download.progress
    let received = progress.received > 0 ? ByteFormat.binary.format(progress.received) : "–"
    let done = download.artifact == nil ? progress.fraction.map(ProgressFormat.percent) ?? received : "100%"
    let name = download.name ?? urls.text(download.request.givenURL)
    return row(
      download.id.rawValue, download.listedPhase.rawValue, done,
      (download.artifact?.size ?? progress.total).formatted(),
      name + ((reason ?? download.error?.message).map { "  (\($0))" } ?? ""))
  }

  static func json(_ download: DownloadStatus, _ urls: URLStyle = URLStyle(), reason: String? = nil) -> String {
    var object: JSONObject = [
      "id": download.id.rawValue, "state": download.listedPhase.rawValue,
      "url": urls.text(download.request.givenURL),
      "path": download.artifact?.place, "bytes": download.artifact?.size.bytes ?? download.progress.received,
      "total": download.progress.total.bytes, "attempts": download.attempts, "resumedFrom": download.resumedFrom,
      "bytesFetched": download.bytesFetched, "priority": Int(download.request.priority.rawValue), "reason": reason,
      "until": download.hindrance?.until?.formatted(.iso8601), "error": download.error.map(StatusLine.error),
    ]
    if !download.verified.isEmpty { object.add("verified", download.verified.map(StatusLine.verified)) }
    return object.json
  }

  static func row(_ orphan: StoredPartial) -> String {
    let (id, generation) = (orphan.key.id.rawValue, orphan.key.generation)
    return row(id, "orphan", "–", ByteFormat.binary.format(orphan.size), "addition \(generation)")
  }

  static func json(_ orphan: StoredPartial) -> String {
    let object: JSONObject = [
      "id": orphan.key.id.rawValue, "generation": orphan.key.generation, "bytes": orphan.size,
    ]
    return object.json
  }

  static func row(_ copy: StrayCopy) -> String {
    row(copy.id.rawValue, "copy", "100%", copy.artifact.size.formatted(), copy.artifact.place ?? "")
  }

  static func json(_ copy: StrayCopy) -> String {
    let object: JSONObject = [
      "id": copy.id.rawValue, "state": "copy", "path": copy.artifact.place, "bytes": copy.artifact.size.bytes,
    ]
    return object.json
  }

  static func row(_ damaged: DamagedRecord) -> String {
    row(damaged.id.rawValue, "damaged", "–", "–", "\(damaged.reason): remove it with “downpipe remove \(damaged.id)”")
  }

  static func json(_ damaged: DamagedRecord) -> String {
    let object: JSONObject = ["id": damaged.id.rawValue, "state": "damaged", "reason": damaged.reason]
    return object.json
  }

  /// Ids are never cut: `downpipe remove` needs them whole.
  private static func row(_ id: String, _ state: String, _ done: String, _ size: String, _ name: String) -> String {
    let columns = [(id, 16), (state, 12), (done, 9), (size, 9)].map { text, width in
      text.harmless + String(repeating: " ", count: max(0, width - text.harmless.columns))
    }
    return (columns + [name.harmless]).joined(separator: "  ")
  }
}

extension DownloadStatus {
  /// The phase for a list: a download that another process works on is being transferred.
  fileprivate var listedPhase: DownloadState.Phase { state == .waiting(.elsewhere) ? .transferring : state.phase }
}
