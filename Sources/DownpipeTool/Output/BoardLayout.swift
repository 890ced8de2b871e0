import Downpipe
import Foundation

/// Lays the progress board out as lines of text: equal input gives equal lines, and no line is wider than the terminal.
struct BoardLayout {
  struct Style: Hashable {
    var hasColor = true
    var isASCII = false
  }

  /// The size of the terminal.
  var columns: Int
  var rows: Int
  var style = Style()

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
    let label = status.shownName.harmless.fitted(to: labelColumns)
    switch status.state {
    case .waiting(let reason):
      let room = width - labelColumns - 1
      let text = waiting(reason, at: now).harmless.truncated(to: room)
      return room > 4 ? colored(label, nil) + " " + colored(text, .yellow) : colored(label.truncated(to: width), nil)
    case .processing(let step):
      let room = min(width, width >= 64 ? 33 : width >= 44 ? 16 : 5)
      return row(label, 1, " \(step.harmless)…".fitted(to: room), .green, at: now)
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
    let name = (result.path?.split(separator: "/").last.map(String.init) ?? result.url).harmless
    if let error = result.error {
      let mark = style.isASCII ? "x" : "✗"
      return colored("\(mark) \(name)", .red) + colored(": \(error.sentence.harmless)", nil)
    }
    var facts = "  " + ByteFormat.binary.format(result.bytes)
    if result.wasFinishedBefore {
      facts += ", already there"
    } else {
      if result.resumedFrom > 0 { facts += ", resumed at \(ByteFormat.binary.format(result.resumedFrom))" }
      if result.attempts > 1 { facts += ", \(result.attempts) attempts" }
    }
    let room = max(8, width - 2 - facts.columns)
    let mark = colored(style.isASCII ? "* " : "✓ ", .green)
    return mark + colored(name.columns > room ? name.fitted(to: room) : name, nil) + colored(facts, .dim)
  }

  // MARK: Parts of a row

  /// The last column stays empty: some terminals wrap after a character there.
  private var width: Int { max(1, columns - 1) }
  private var labelColumns: Int { min(width, max(8, min(40, width * 28 / 100))) }

  private func row(_ label: String, _ fraction: Double?, _ numbers: String, _ color: Color, at now: Date) -> String {
    let cells = width - labelColumns - 3 - numbers.columns
    // A shorter bar tells nothing; the numbers do.
    guard cells >= 3 else { return colored((label + numbers).truncated(to: width), nil) }
    let bar = fraction.map { self.bar($0, cells) } ?? wandering(cells, at: now)
    return colored(label, nil) + " " + colored((style.isASCII ? "[\(bar)]" : "▕\(bar)▏"), color) + colored(numbers, nil)
  }

  /// A bar of whole cells and eighths, full only at the end.
  private func bar(_ fraction: Double, _ cells: Int) -> String {
    let eighths = Int((min(1, max(0, fraction)) * Double(cells * 8)).rounded(.down))
    if style.isASCII {
      let full = String(repeating: "=", count: eighths / 8)
      return (fraction > 0 && fraction < 1 ? full + ">" : full).fitted(to: cells)
    }
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]
    return (String(repeating: "█", count: eighths / 8) + rest).fitted(to: cells)
  }

  /// A block that moves to and fro, for a transfer of unknown size.
  private func wandering(_ cells: Int, at now: Date) -> String {
    let block = min(4, cells)
    let way = max(1, cells - block)
    let step = Int(max(0, now.timeIntervalSinceReferenceDate) * 8) % (2 * way)
    let position = cells == block ? 0 : min(step, 2 * way - step)
    let text = String(repeating: " ", count: position) + String(repeating: style.isASCII ? "=" : "▒", count: block)
    return text.fitted(to: cells)
  }

  private func waiting(_ reason: WaitingReason, at now: Date) -> String {
    guard case .retry(let date, let error) = reason else { return reason.description }
    return "retrying in \(TimeLeftFormat().format(.seconds(max(0, date.timeIntervalSince(now))))): \(error.message)"
  }

  // MARK: Characters and colours

  private enum Color: Int { case bold = 1, dim, red = 31, green, yellow, cyan = 36 }

  /// The text in the characters and colours that the terminal has, as wide as before.
  private func colored(_ text: String, _ color: Color?) -> String {
    let text = style.isASCII ? String(text.flatMap(ascii)) : text
    guard style.hasColor, let color, !text.isEmpty else { return text }
    return "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m"
  }

  private func ascii(_ character: Character) -> String {
    switch character {
    case "…": "~"
    case "·", "–": "-"
    default: character.isASCII ? String(character) : String(repeating: "?", count: character.columns)
    }
  }
}

extension BoardLayout.Style {
  /// Follows `NO_COLOR` (no-color.org) and the charset of the locale.
  init(environment: [String: String]) {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].compactMap { environment[$0] }.first { !$0.isEmpty }
    // Containers have no locale, and their terminals speak UTF-8.
    let charset = locale?.split(separator: ".").dropFirst().first?.lowercased() ?? "utf-8"
    self.init(
      hasColor: environment["NO_COLOR"].map(\.isEmpty) ?? true,
      isASCII: !charset.hasPrefix("utf-8") && !charset.hasPrefix("utf8"))
  }
}

extension DownloadStatus {
  /// The name of the file; while that is not known, the last part of the URL.
  fileprivate var shownName: String {
    let last = request.url.lastPathComponent
    return name ?? (last.isEmpty || last == "/" ? request.shownURL : last)
  }
}
