import Downpipe
import Foundation

/// What the bars show: the files under way in the order in which they began, and the sums over all.
struct ProgressBoard {
  private struct Entry {
    var status: DownloadStatus
    /// What earlier runs had fetched of it.
    var fetchedBefore: Int64
    /// Its place among the rows.
    var place: Int

    var fetched: Int64 { max(0, status.bytesFetched - fetchedBefore, status.progress.received - status.resumedFrom) }
  }

  private var entries: [DownloadID: Entry] = [:]
  private var nextPlace = 0
  private var waitsFor: String?
  private var meter = SpeedMeter()
  private var closedFetched: Int64 = 0
  private var closedBytes: Int64 = 0
  private var closedCount = 0

  /// Something about a download changed.
  mutating func show(_ status: DownloadStatus) {
    switch status.state {
    case .waiting(.retry), .waiting(.missing), .transferring, .processing: break
    case .waiting(let reason):
      if case .gate = reason { waitsFor = reason.description }
      if case .elsewhere = reason { waitsFor = reason.description }
      if let entry = entries.removeValue(forKey: status.id) { closedFetched += entry.fetched }
      return
    default: return
    }
    waitsFor = nil
    if entries[status.id] != nil {
      entries[status.id]?.status = status
    } else {
      let thisTransfer = max(0, status.progress.received - status.resumedFrom)
      entries[status.id] = Entry(
        status: status, fetchedBefore: max(0, status.bytesFetched - thisTransfer), place: nextPlace)
      nextPlace += 1
    }
  }

  /// A download is over.
  mutating func show(_ word: LastWord) {
    let entry = entries.removeValue(forKey: word.id)
    if word.isFinished, !word.wasFinishedBefore {
      closedCount += 1
      closedBytes += word.bytes
    }
    // A file that came and went between two looks was fetched as a whole, unless it was resumed.
    let unseen = word.wasFinishedBefore ? 0 : max(0, word.bytesFetched - word.resumedFrom)
    closedFetched += entry.map { max($0.fetched, word.bytesFetched - $0.fetchedBefore) } ?? unseen
  }

  /// The files to be shown.
  var files: [DownloadStatus] { entries.values.sorted { $0.place < $1.place }.map(\.status) }

  /// The bytes this run has fetched.
  var fetched: Int64 { entries.values.reduce(closedFetched) { $0 + $1.fetched } }

  /// The line of the whole.
  mutating func total(_ tally: Tally, at now: Date) -> TotalLine {
    meter.note(fetched, at: now)
    var line = TotalLine(tally: tally)
    let totals = entries.values.compactMap(\.status.progress.total.bytes)
    let received = entries.values.reduce(0) { $0 + $1.status.progress.received }
    let done = tally.finishedBytes + received
    line.bytesPerSecond = entries.isEmpty && closedCount == 0 ? nil : meter.bytesPerSecond
    let waiting = max(0, tally.open - entries.count)

    // What has not begun is taken to be as large as the others are on average.
    let known = totals.reduce(closedBytes, +)
    let knownCount = totals.count + closedCount
    let unknown = waiting + entries.count - totals.count
    let mean = knownCount > 0 ? Double(known) / Double(knownCount) : nil
    line.isEstimate = unknown > 0 || !tally.isComplete
    line.bytes =
      if line.isEstimate {
        ByteFormat.binary.format(done)
      } else {
        "\(ByteFormat.binary.format(done)) of \(ByteFormat.binary.format(tally.finishedBytes + totals.reduce(0, +)))"
      }
    let left = Double(totals.reduce(0, +)) - Double(knownReceived) + Double(unknown) * (mean ?? 0)
    if let speed = line.bytesPerSecond, speed > 0, left > 0, mean != nil || unknown == 0 {
      line.timeRemaining = .seconds(min(left / speed, 1e9))
    }
    if entries.isEmpty, tally.open > 0 { line.note = waitsFor }
    return line
  }

  private var knownReceived: Int64 {
    entries.values.reduce(0) { $0 + ($1.status.progress.total.bytes == nil ? 0 : $1.status.progress.received) }
  }
}
