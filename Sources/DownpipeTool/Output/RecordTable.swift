import Downpipe

/// The records of a ledger as a table, or as JSON.
enum RecordTable {
  /// The first line of the table.
  static let heading = line("ID", "STATE", "DONE", "SIZE", "NAME")

  /// The row of a download.
  static func row(_ download: DownloadStatus) -> String {
    let progress = download.progress
    var done = "–"
    if download.artifact != nil {
      done = "100%"
    } else if let fraction = progress.fraction {
      done = ProgressFormat.percent(fraction)
    } else if progress.received > 0 {
      done = ByteFormat.binary.format(progress.received)
    }
    let size = (download.artifact?.size ?? progress.total).formatted()
    var last = download.name ?? download.request.shownURL
    if let error = download.error { last += "  (\(error.message))" }
    return line(download.id.rawValue, download.listedPhase.rawValue, done, size, last)
  }

  /// The line of a download.
  static func json(_ download: DownloadStatus) -> String {
    var object = JSONObject()
    object.add("id", download.id.rawValue)
    object.add("state", download.listedPhase.rawValue)
    object.add("url", download.request.shownURL)
    object.add("path", download.artifact?.path)
    object.add("bytes", download.artifact?.size.bytes ?? download.progress.received)
    object.add("total", download.progress.total.bytes)
    object.add("attempts", download.attempts)
    object.add("resumedFrom", download.resumedFrom)
    object.add("bytesFetched", download.bytesFetched)
    object.add("error", download.error.map(JSONOutput.object))
    return object.closed
  }

  /// The row of an orphan.
  static func row(_ orphan: StoredPartial) -> String {
    let size = ByteFormat.binary.format(orphan.size)
    return line(orphan.key.id.rawValue, "orphan", "–", size, "addition \(orphan.key.generation)")
  }

  /// The line of an orphan.
  static func json(_ orphan: StoredPartial) -> String {
    var object = JSONObject()
    object.add("id", orphan.key.id.rawValue)
    object.add("generation", orphan.key.generation)
    object.add("bytes", orphan.size)
    return object.closed
  }

  /// The row of a record that cannot be read.
  static func row(_ damaged: DamagedRecord) -> String {
    line(damaged.id.rawValue, "damaged", "–", "–", "\(damaged.reason): downpipe remove \(damaged.id) removes it")
  }

  /// The line of a record that cannot be read.
  static func json(_ damaged: DamagedRecord) -> String {
    var object = JSONObject()
    object.add("id", damaged.id.rawValue)
    object.add("state", "damaged")
    object.add("reason", damaged.reason)
    return object.closed
  }

  private static func line(_ id: String, _ state: String, _ done: String, _ size: String, _ name: String) -> String {
    let columns = [(id, 16), (state, 12), (done, 9), (size, 9)]
    let text = columns.map { text, width in
      let text = DisplayWidth.harmless(text)
      // Ids of other programs may be longer, and are never cut: `remove` needs them whole.
      return text + String(repeating: " ", count: max(0, width - DisplayWidth.of(text)))
    }
    return (text + [DisplayWidth.harmless(name)]).joined(separator: "  ")
  }
}

extension DownloadStatus {
  /// The phase as it is listed: what another process works on is being transferred.
  fileprivate var listedPhase: DownloadState.Phase { state == .waiting(.elsewhere) ? .transferring : state.phase }
}
