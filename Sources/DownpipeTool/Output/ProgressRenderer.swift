import Downpipe
import Foundation

/// Draws the state of a command as lines of text: a row for each running file and one for the whole. Pure:
/// equal input gives equal lines, and no line is wider than the terminal.
struct ProgressRenderer {
  /// What the terminal can do.
  struct Style: Hashable {
    /// Whether colours may be used (see no-color.org).
    var hasColor = true
    /// Whether only ASCII may be used.
    var isASCII = false
  }

  /// The terminal's width.
  var columns: Int
  /// The terminal's height.
  var rows: Int
  /// What the terminal can do.
  var style = Style()

  /// The whole frame.
  ///
  /// - Parameters:
  ///   - files: those to be shown, in the order of their rows.
  ///   - total: the line below them.
  ///   - now: decides how long waiting files wait still, and where bars without an end stand.
  func frame(files: [DownloadStatus], total: TotalLine, at now: Date) -> [String] {
    // The line of the cursor and the line of the whole stay free.
    let room = max(0, rows - 2)
    let shown = files.count <= room ? files.count : max(0, room - 1)
    var lines = files.prefix(shown).map { row($0, at: now) }
    if shown < files.count, room > 0 {
      let text = "… and \(files.count - shown) more"
      lines.append(colored(truncated(text, to: width), .dim))
    }
    lines.append(line(total))
    return lines
  }

  /// The last column stays empty: writing there makes some terminals wrap.
  private var width: Int { max(1, columns - 1) }

  // MARK: One file

  /// The row of a file.
  func row(_ status: DownloadStatus, at now: Date) -> String {
    let name = DisplayWidth.harmless(status.shownName)
    let label = DisplayWidth.fit(name, to: nameColumns)
    switch status.state {
    case .waiting(let reason): return note(label, waiting(reason, at: now), .yellow)
    case .processing(let step): return processing(label, step: step, status)
    default: return transferring(label, status, at: now)
    }
  }

  private var nameColumns: Int { min(width, max(8, min(40, width * 28 / 100))) }

  private func transferring(_ label: String, _ status: DownloadStatus, at now: Date) -> String {
    let progress = status.progress
    var numbers = right(progress.fraction.map(ProgressFormat.percent) ?? "", 5)
    if width >= 56 { numbers += right(ByteFormat.binary.format(progress.received), 9) }
    if width >= 44 { numbers += right(progress.bytesPerSecond.map(ByteFormat.binary.speed) ?? "", 11) }
    if width >= 64 { numbers += right(progress.timeRemaining.map(TimeLeftFormat().format) ?? "", 8) }
    let bar = self.bar(beside: numbers)
    let text =
      if let fraction = progress.fraction {
        bar.text(fraction: fraction)
      } else {
        bar.text(wanderingAt: now.timeIntervalSinceReferenceDate)
      }
    return join(label, text, numbers, .cyan)
  }

  private func processing(_ label: String, step: String, _ status: DownloadStatus) -> String {
    let room = width >= 64 ? 33 : width >= 44 ? 16 : 5
    let numbers = DisplayWidth.fit(" " + DisplayWidth.harmless(step) + "…", to: min(room, width))
    return join(label, bar(beside: numbers).text(fraction: 1), numbers, .green)
  }

  private func bar(beside numbers: String) -> ProgressBar {
    ProgressBar(columns: width - nameColumns - 1 - DisplayWidth.of(numbers), isASCII: style.isASCII)
  }

  private func join(_ label: String, _ bar: String, _ numbers: String, _ color: Color) -> String {
    // A bar of two or three cells says nothing, and the numbers go first where there is no room.
    guard DisplayWidth.of(bar) >= 5 else {
      return truncated(label + numbers, to: width)
    }
    return plain(label) + " " + colored(bar, color) + plain(numbers)
  }

  private func note(_ label: String, _ text: String, _ color: Color) -> String {
    let room = width - nameColumns - 1
    guard room > 4 else { return truncated(label, to: width) }
    return plain(label) + " " + colored(truncated(DisplayWidth.harmless(text), to: room), color)
  }

  private func waiting(_ reason: WaitingReason, at now: Date) -> String {
    guard case .retry(let date, let error) = reason else { return reason.description }
    let left = Duration.seconds(max(0, date.timeIntervalSince(now)))
    let when = left > .zero ? "again in \(Formatting.seconds(left))" : "again now"
    return "\(when): \(error.message)"
  }

  // MARK: The whole

  private func line(_ total: TotalLine) -> String {
    let tally = total.tally
    // The end is cut where it is too long, so that what matters most comes first.
    var parts = ["\(tally.finished)/\(tally.total)\(tally.isComplete ? "" : "+") files"]
    if tally.failed > 0 { parts.append("\(tally.failed) failed") }
    if let bytes = total.bytes { parts.append(bytes) }
    if let speed = total.bytesPerSecond { parts.append(ByteFormat.binary.speed(speed)) }
    if let left = total.timeRemaining {
      parts.append("\(total.isEstimate ? "about " : "")\(TimeLeftFormat().format(left)) left")
    }
    if let note = total.note { parts.append(DisplayWidth.harmless(note)) }
    let text = truncated(parts.joined(separator: " · "), to: width)
    return colored(text, tally.failed > 0 ? .red : .bold)
  }

  // MARK: Text

  /// The line of a file that is over; it stays above the bars.
  func line(_ word: LastWord) -> String {
    let name = DisplayWidth.harmless(word.path.map(lastComponent) ?? word.url)
    if let error = word.error {
      let mark = style.isASCII ? "x" : "✗"
      // What went wrong is never cut: it is what the reader needs.
      let stage = error.stage.map { "\($0): " } ?? ""
      return colored("\(mark) \(plain(name))", .red) + plain(": " + DisplayWidth.harmless(stage + error.message))
    }
    let mark = style.isASCII ? "*" : "✓"
    var facts = [ByteFormat.binary.format(word.bytes)]
    if word.wasFinishedBefore {
      facts.append("there already")
    } else {
      if word.resumedFrom > 0 { facts.append("resumed at \(ByteFormat.binary.format(word.resumedFrom))") }
      if word.attempts > 1 { facts.append("\(word.attempts) attempts") }
    }
    let tail = "  " + facts.joined(separator: ", ")
    let room = max(8, width - 2 - DisplayWidth.of(tail))
    let shown = DisplayWidth.of(name) > room ? DisplayWidth.fit(name, to: room) : name
    return colored("\(mark) ", .green) + plain(shown) + colored(plain(tail), .dim)
  }

  private func lastComponent(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }

  private func right(_ text: String, _ columns: Int) -> String {
    let width = DisplayWidth.of(text)
    return width >= columns ? text : String(repeating: " ", count: columns - width) + text
  }

  private func truncated(_ text: String, to columns: Int) -> String {
    plain(DisplayWidth.truncate(text, to: columns))
  }

  /// The text in the characters that the terminal has; as wide as before.
  private func plain(_ text: String) -> String {
    guard style.isASCII else { return text }
    var result = ""
    for character in text {
      switch character {
      case "…": result += "~"
      case "·": result += "-"
      case "–": result += "-"
      default:
        result += character.isASCII ? String(character) : String(repeating: "?", count: DisplayWidth.of(character))
      }
    }
    return result
  }

  private enum Color: String {
    case bold = "1"
    case dim = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"
    case cyan = "36"
  }

  private func colored(_ text: String, _ color: Color) -> String {
    style.hasColor && !text.isEmpty ? "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m" : text
  }
}

/// What the line of the whole says.
struct TotalLine {
  /// How many files.
  var tally: Tally
  /// How many bytes, in words.
  var bytes: String?
  /// How fast.
  var bytesPerSecond: Double?
  /// How long still.
  var timeRemaining: Duration?
  /// Whether ``timeRemaining`` guesses the sizes of files that have not begun.
  var isEstimate = false
  /// Why nothing happens, when nothing does.
  var note: String?
}

extension DownloadStatus {
  /// What the row of a download is called: its name, or the URL's last part while that is not known.
  var shownName: String {
    if let name { return name }
    let last = request.url.lastPathComponent
    return last.isEmpty || last == "/" ? request.givenURL : last
  }
}
