import Downpipe
import Foundation

/// Lays the progress board out as lines of text: equal input gives equal lines, and no line is wider than the terminal.
struct BoardLayout {
  /// The size of the terminal.
  var columns: Int
  var rows: Int
  var hasColor = true
  var urls = URLStyle()

  /// A row for each running download, as far as the terminal has room, and the summary below them.
  func frame(_ running: [DownloadStatus], summary: [String], at now: Date) -> [String] {
    // One line is the summary's, another the cursor's.
    let room = max(0, rows - 2)
    let shown = running.count <= room ? running.count : max(0, room - 1)
    var lines = running.prefix(shown).map { row($0, at: now) }
    if shown < running.count, room > 0 {
      lines.append(colored("… and \(running.count - shown) more".truncated(to: width), .dim))
    }
    let hasFailures = summary.contains { $0.hasSuffix(" failed") }
    return lines + [colored(summary.joined(separator: " · ").truncated(to: width), hasFailures ? .red : .bold)]
  }

  func row(_ status: DownloadStatus, at now: Date) -> String {
    let label = name(of: status).harmless.fitted(to: labelColumns)
    switch status.state {
    case .waiting(let reason):
      let room = width - labelColumns - 1
      let text = waiting(reason, at: now).harmless.truncated(to: room)
      return room > 4 ? label + " " + colored(text, .yellow) : label.truncated(to: width)
    case .processing(let step):
      let room = min(width, width >= 64 ? 33 : width >= 44 ? 16 : 5)
      let share = status.stepProgress?.fraction
      let percent = share.map { " " + ProgressFormat.percent($0) } ?? ""
      return row(label, share ?? 1, " \(step.harmless)…\(percent)".fitted(to: room), .green, at: now)
    default:
      let progress = status.progress
      var numbers = (progress.fraction.map(ProgressFormat.percent) ?? "").rightAligned(to: 5)
      if width >= 56 { numbers += ByteFormat.binary.format(progress.received).rightAligned(to: 9) }
      if width >= 44 { numbers += (progress.bytesPerSecond.map(ByteFormat.binary.speed) ?? "").rightAligned(to: 11) }
      if width >= 64 { numbers += (progress.timeRemaining.map(TimeLeftFormat().format) ?? "").rightAligned(to: 8) }
      return row(label, progress.fraction, numbers, .cyan, at: now)
    }
  }

  /// The line of a download that has ended. Why it failed is never cut.
  func line(_ result: DownloadResult) -> String {
    let name = (result.path?.split(separator: "/").last.map(String.init) ?? urls.label(result.url, result.id))
      .harmless
    if let error = result.error {
      return colored("✗ \(name)", .red) + ": \(error.sentence.harmless)"
    }
    var facts = "  " + ByteFormat.binary.format(result.bytes)
    if result.wasFinishedBefore {
      facts += ", already there"
    } else {
      if result.resumedFrom > 0 { facts += ", resumed at \(ByteFormat.binary.format(result.resumedFrom))" }
      if result.attempts > 1 { facts += ", \(result.attempts) attempts" }
    }
    let room = max(8, width - 2 - facts.columns)
    return colored("✓ ", .green) + (name.columns > room ? name.fitted(to: room) : name) + colored(facts, .dim)
  }

  /// The line of a notice, which is never cut.
  func line(_ notice: DownloadNotice) -> String { "! \(PlainOutput.message(notice, urls))" }

  // MARK: Parts of a row

  /// The last column stays empty: some terminals wrap after a character there.
  private var width: Int { max(1, columns - 1) }
  private var labelColumns: Int { min(width, max(8, min(40, width * 28 / 100))) }

  private func row(_ label: String, _ fraction: Double?, _ numbers: String, _ color: Color, at now: Date) -> String {
    let cells = width - labelColumns - 3 - numbers.columns
    // A shorter bar tells nothing; the numbers do.
    guard cells >= 3 else { return (label + numbers).truncated(to: width) }
    let bar = fraction.map { self.bar($0, cells) } ?? wandering(cells, at: now)
    return label + " " + colored("▕" + bar.fitted(to: cells) + "▏", color) + numbers
  }

  /// Whole cells and eighths; full only at the end.
  private func bar(_ fraction: Double, _ cells: Int) -> String {
    let eighths = Int((min(1, max(0, fraction)) * Double(cells * 8)).rounded(.down))
    return String(repeating: "█", count: eighths / 8) + ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]
  }

  /// A block that moves to and fro, for a transfer of unknown size.
  private func wandering(_ cells: Int, at now: Date) -> String {
    let way = max(1, cells - 4)
    let step = Int(max(0, now.timeIntervalSinceReferenceDate) * 8) % (2 * way)
    return String(repeating: " ", count: min(step, 2 * way - step)) + String(repeating: "▒", count: min(4, cells))
  }

  private func waiting(_ reason: WaitingReason, at now: Date) -> String {
    guard case .retry(let date, let error) = reason else { return reason.description }
    return "retrying in \(TimeLeftFormat().format(.seconds(max(0, date.timeIntervalSince(now))))): \(error.message)"
  }

  /// The name of the file; while that is not known, the last part of the path of the URL.
  private func name(of status: DownloadStatus) -> String {
    let last = status.request.url.lastPathComponent
    return status.name ?? (last.isEmpty || last == "/" ? urls.text(status.request.givenURL) : last)
  }

  private enum Color: Int { case bold = 1, dim, red = 31, green, yellow, cyan = 36 }

  private func colored(_ text: String, _ color: Color) -> String {
    hasColor && !text.isEmpty ? "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m" : text
  }
}
