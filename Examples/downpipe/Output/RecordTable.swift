import Downpipe

/// The records of a ledger as a table, or as JSON.
enum RecordTable {
  /// The first line of the table.
  static let heading = line("ID", "STATE", "DONE", "SIZE", "NAME")

  /// The row of a record.
  static func row(_ record: DownloadRecord) -> String {
    let received = record.checkpoint.ranges.byteCount
    var done = "–"
    if record.phase == .finished {
      done = "100%"
    } else if let total = record.checkpoint.total.bytes, total > 0 {
      done = Formatting.percent(Double(received) / Double(total))
    } else if received > 0 {
      done = Formatting.bytes(received)
    }
    let size = (record.steps.artifact?.size ?? record.checkpoint.total.bytes).map(Formatting.bytes) ?? "–"
    let name = record.steps.artifact?.name ?? record.checkpoint.name ?? record.request.destination.name
    var last = name ?? record.request.shownURL
    if let error = record.error, record.phase != .finished { last += "  (\(error.message))" }
    return line(record.id.rawValue, record.phase.rawValue, done, size, last)
  }

  /// The line of a record.
  static func json(_ record: DownloadRecord, _ storage: some Storage) -> String {
    var object = JSONObject()
    object.add("id", record.id.rawValue)
    object.add("state", record.phase.rawValue)
    object.add("url", record.request.shownURL)
    let path = record.phase == .finished ? record.steps.artifact?.path : nil
    object.add("path", path.flatMap { try? storage.path(forStored: $0) })
    object.add("bytes", record.steps.artifact?.size ?? record.checkpoint.ranges.byteCount)
    object.add("total", record.checkpoint.total.bytes)
    object.add("attempts", record.attempts)
    object.add("resumedFrom", record.resumedFrom)
    object.add("bytesFetched", record.bytesFetched)
    object.add("error", record.phase == .finished ? nil : record.error.map(JSONOutput.object))
    return object.closed
  }

  /// The row of an orphan.
  static func row(_ orphan: StoredPartial) -> String {
    line(orphan.key.id.rawValue, "orphan", "–", Formatting.bytes(orphan.size), "addition \(orphan.key.generation)")
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
