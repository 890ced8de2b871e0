import Downpipe
import Foundation

/// Progress bars on the terminal. A file that is over becomes a line above them.
struct BarsOutput: RunOutput {
  private var terminal: Terminal
  private let style: ProgressRenderer.Style
  /// Gets a plain line a finished file, when standard output is not the terminal.
  private var plain: PlainOutput?

  private var board = ProgressBoard()
  private var over: [LastWord] = []
  private var lastDrawn = Date.distantPast

  init(
    style: ProgressRenderer.Style, terminal: OutputFile = .standardError, plain: PlainOutput? = nil
  ) {
    self.style = style
    self.terminal = Terminal(terminal)
    self.plain = plain
  }

  mutating func show(_ status: DownloadStatus) { board.show(status) }

  mutating func show(_ word: LastWord) {
    board.show(word)
    over.append(word)
    plain?.show(word)
  }

  mutating func flush(_ tally: Tally, at now: Date) throws {
    // Ten frames a second are as many as anybody sees.
    guard now.timeIntervalSince(lastDrawn) >= 0.095 || now < lastDrawn else { return }
    lastDrawn = now
    try plain?.flush(tally, at: now)
    let renderer = renderer
    let frame = renderer.frame(files: board.files, total: board.total(tally, at: now), at: now)
    try terminal.draw(above: takeLines(renderer), frame: frame)
  }

  mutating func end(_ tally: Tally, at now: Date) throws {
    try plain?.flush(tally, at: now)
    let renderer = renderer
    var lines = takeLines(renderer)
    if tally.total > 1 { lines.append(Self.summary(tally, fetched: board.fetched, at: now)) }
    try terminal.end(above: lines)
  }

  private var renderer: ProgressRenderer {
    let size = terminal.size
    return ProgressRenderer(columns: size.columns, rows: size.rows, style: style)
  }

  private mutating func takeLines(_ renderer: ProgressRenderer) -> [String] {
    defer { over = [] }
    // With finished files on standard output, the terminal only needs to know what failed.
    return over.filter { plain == nil || !$0.isFinished }.map(renderer.line)
  }

  /// What is left of it all when it is over.
  static func summary(_ tally: Tally, fetched: Int64, at now: Date) -> String {
    let time = max(0, now.timeIntervalSince(tally.startedAt))
    var parts = ["\(tally.finished) of \(tally.total) files finished"]
    if tally.failed > 0 { parts.append("\(tally.failed) failed") }
    if tally.finishedBefore > 0 { parts.append("\(tally.finishedBefore) there already") }
    var speed = ""
    if fetched > 0, time > 0.05 { speed = " (\(ByteFormat.binary.speed(Double(fetched) / time)))" }
    return parts.joined(separator: ", ")
      + ": \(ByteFormat.binary.format(fetched)) fetched in \(Formatting.seconds(.seconds(time)))\(speed)"
  }
}
