import Downpipe
import Foundation

/// Progress bars at the lower end of a terminal, and a line for each download that has ended above them.
struct BoardOutput: RunOutput {
  private var terminal: Terminal
  private let hasColor: Bool
  private let urls: URLStyle
  /// Writes standard output where that is not the terminal.
  private var plain: PlainOutput?

  private var board = ProgressBoard()
  private var ended: [DownloadResult] = []
  private var notices: [DownloadNotice] = []
  private var lastDrawn = Date.distantPast

  init(
    hasColor: Bool, urls: URLStyle = URLStyle(), terminal: OutputFile = .standardError, plain: PlainOutput? = nil
  ) {
    self.hasColor = hasColor
    self.urls = urls
    self.terminal = Terminal(terminal)
    self.plain = plain
  }

  mutating func show(_ status: DownloadStatus, isNews: Bool) { board.show(status) }

  mutating func show(_ result: DownloadResult) {
    board.show(result)
    ended.append(result)
    plain?.show(result)
  }

  mutating func show(_ notice: DownloadNotice) { notices.append(notice) }

  mutating func flush(_ tally: Tally, at now: Date) throws {
    // At most ten frames a second, and none missed by a timer that is early.
    guard now.timeIntervalSince(lastDrawn) >= 0.095 || now < lastDrawn else { return }
    lastDrawn = now
    try plain?.flush(tally, at: now)
    let summary = board.summary(tally, at: now)
    let layout = layout
    try terminal.draw(above: takeEnded(layout), frame: layout.frame(board.running, summary: summary, at: now))
  }

  mutating func end(_ tally: Tally, at now: Date) throws {
    try plain?.flush(tally, at: now)
    let closing = tally.total > 1 ? [board.closing(tally, at: now)] : []
    try terminal.end(above: takeEnded(layout) + closing)
  }

  private var layout: BoardLayout {
    let size = terminal.size
    return BoardLayout(columns: size.columns, rows: size.rows, hasColor: hasColor, urls: urls)
  }

  private mutating func takeEnded(_ layout: BoardLayout) -> [String] {
    defer { (ended, notices) = ([], []) }
    // Finished files are on standard output already where that is not the terminal.
    return ended.filter { plain == nil || !$0.isFinished }.map(layout.line) + notices.map(layout.line)
  }
}

/// The running downloads in the order in which they started, and the sums over all downloads of a command.
struct ProgressBoard {
  private struct Row {
    var status: DownloadStatus
    /// What earlier runs have fetched.
    let fetchedBefore: Int64
    let place: Int

    var fetched: Int64 { max(0, status.bytesFetched - fetchedBefore, status.transferred) }
  }

  private var rows: [DownloadID: Row] = [:]
  private var nextPlace = 0
  /// Why nothing runs, when nothing does.
  private var hindrance: String?
  /// Counts and bytes of the downloads that no longer run.
  private var finished = 0
  private var finishedBytes: Int64 = 0
  private var fetchedByOthers: Int64 = 0
  /// ``fetched`` over the last seconds, which give the speed: files that take less than a second have none of their
  /// own.
  private var samples: [(date: Date, fetched: Int64)] = []

  var running: [DownloadStatus] { rows.values.sorted { $0.place < $1.place }.map(\.status) }

  /// The bytes that this command has received over the network.
  var fetched: Int64 { rows.values.map(\.fetched).saturatedSum.addingSaturated(fetchedByOthers) }

  mutating func show(_ status: DownloadStatus) {
    switch status.state {
    case .waiting(.retry), .waiting(.missing), .transferring, .processing:
      hindrance = nil
      if rows[status.id] == nil {
        // Some bytes have been fetched and are not on disk yet.
        let before = max(0, status.bytesFetched - max(status.progress.fetched, status.transferred))
        rows[status.id] = Row(status: status, fetchedBefore: before, place: nextPlace)
        nextPlace += 1
      }
      rows[status.id]?.status = status
    case .waiting:
      if let reason = status.hindrance { hindrance = reason.description }
      if let row = rows.removeValue(forKey: status.id) {
        fetchedByOthers = fetchedByOthers.addingSaturated(row.fetched)
      }
    default: break
    }
  }

  mutating func show(_ result: DownloadResult) {
    let row = rows.removeValue(forKey: result.id)
    if result.wasFinishedBefore { return }
    finished += result.isFinished ? 1 : 0
    finishedBytes = finishedBytes.addingSaturated(result.isFinished ? result.bytes : 0)
    // Without a row, the download started and ended between two batches of changes.
    let fetched = max(row?.fetched ?? 0, result.bytesFetched - (row?.fetchedBefore ?? result.resumedFrom), 0)
    fetchedByOthers = fetchedByOthers.addingSaturated(fetched)
  }

  /// The facts of the last line, the most important first: it may be cut.
  mutating func summary(_ tally: Tally, at now: Date) -> [String] {
    let statuses = rows.values.map(\.status)
    let known = statuses.compactMap(\.progress.total.bytes).saturatedSum
    let sized = statuses.filter { $0.progress.total != .unknown }
    let unknown = max(0, tally.open - rows.count) + rows.count - sized.count
    let isEstimate = unknown > 0 || !tally.isComplete
    let done = ByteFormat.binary.format(
      tally.finishedBytes.addingSaturated(statuses.map(\.progress.received).saturatedSum))

    var facts = ["\(tally.finished)/\(tally.total)\(tally.isComplete ? "" : "+") files"]
    if tally.failed > 0 { facts.append("\(tally.failed) failed") }
    let all = ByteFormat.binary.format(tally.finishedBytes.addingSaturated(known))
    facts.append(isEstimate ? done : "\(done) of \(all)")
    if let speed = speed(at: now), !rows.isEmpty || finished > 0 {
      facts.append(ByteFormat.binary.speed(speed))
      // Files of unknown size are taken to be as large as the others are on average.
      let count = sized.count + finished
      let mean = count > 0 ? Double(known.addingSaturated(finishedBytes)) / Double(count) : 0
      let received = sized.map(\.progress.received).saturatedSum
      let left = Double(known - received) + Double(unknown) * mean
      if speed > 0, left > 0, unknown == 0 || count > 0 {
        let time = TimeLeftFormat().format(.seconds(min(left / speed, 1e9)))
        facts.append("\(isEstimate ? "about " : "")\(time) left")
      }
    }
    if rows.isEmpty, tally.open > 0, let hindrance { facts.append(hindrance.harmless) }
    return facts
  }

  /// The line that stays when the command ends.
  func closing(_ tally: Tally, at now: Date) -> String {
    let seconds = max(0, now.timeIntervalSince(tally.startedAt))
    var facts = ["\(tally.finished) of \(tally.total) files finished"]
    if tally.failed > 0 { facts.append("\(tally.failed) failed") }
    if tally.finishedBefore > 0 { facts.append("\(tally.finishedBefore) already there") }
    let speed = fetched > 0 && seconds > 0.05 ? " (\(ByteFormat.binary.speed(Double(fetched) / seconds)))" : ""
    let time = TimeLeftFormat().format(.seconds(seconds))
    return facts.joined(separator: ", ") + ": \(ByteFormat.binary.format(fetched)) fetched in \(time)\(speed)"
  }

  private mutating func speed(at now: Date) -> Double? {
    // Two samples within a tenth of a second count as one.
    if samples.count > 1, let last = samples.last, now.timeIntervalSince(last.date) < 0.09 { samples.removeLast() }
    samples.append((now, max(samples.last?.fetched ?? 0, fetched)))
    while samples.count > 2, now.timeIntervalSince(samples[0].date) > 4 { samples.removeFirst() }
    let seconds = now.timeIntervalSince(samples[0].date)
    return seconds > 0.2 ? Double(samples[samples.count - 1].fetched - samples[0].fetched) / seconds : nil
  }
}

extension Sequence<Int64> {
  /// The sum, or `Int64.max` where it is larger: servers choose lengths.
  fileprivate var saturatedSum: Int64 { reduce(0) { $0.addingSaturated($1) } }
}

extension DownloadStatus {
  /// The bytes that the latest attempt has received.
  fileprivate var transferred: Int64 { max(0, progress.received - resumedFrom) }
}
