import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The lower end of a terminal, redrawn in place: one write a frame, and nothing is erased before it is
/// overwritten, so that nothing flickers.
struct Terminal {
  private let output: OutputFile
  /// The widths of the lines of the last frame, escape sequences not counted.
  private var drawn: [Int] = []
  private var isCursorHidden = false

  /// Draws on a terminal.
  init(_ output: OutputFile) { self.output = output }

  /// Columns and rows as they are at the moment; 80 by 24 when the terminal does not say.
  var size: (columns: Int, rows: Int) {
    var size = winsize()
    guard ioctl(output.descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (80, 24) }
    return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
  }

  /// Puts `frame` in the place of the last one, below `above`, which stays for good.
  mutating func draw(above: [String], frame: [String]) throws {
    try output.write(text(above: above, frame: frame, columns: size.columns))
  }

  /// What ``draw(above:frame:)`` writes. Moves up to the first line of the last frame, overwrites line by line,
  /// erases what is left of each line and below.
  mutating func text(above: [String], frame: [String], columns: Int) -> String {
    var text = ""
    if !isCursorHidden {
      text += Self.hideCursor
      isCursorHidden = true
      Self.isCursorHidden.store(true, ordering: .relaxed)
    }
    // A terminal that has become narrower has wrapped the lines that were there.
    let rows = drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
    text += rows > 0 ? "\r\u{1B}[\(rows)A" : "\r"
    for line in above + frame { text += line + "\u{1B}[K\n" }
    text += "\u{1B}[J"
    drawn = frame.map(Self.width)
    return text
  }

  /// Removes the frame and brings the cursor back.
  mutating func end(above: [String]) throws {
    guard isCursorHidden || !above.isEmpty else { return }
    var text = self.text(above: above, frame: [], columns: size.columns)
    text += Self.showCursor
    isCursorHidden = false
    Self.isCursorHidden.store(false, ordering: .relaxed)
    try output.write(text)
  }

  private static let hideCursor = "\u{1B}[?25l"
  private static let showCursor = "\u{1B}[?25h"

  /// Whether some terminal's cursor is hidden: what ``restore()`` must know when nothing else is left to ask.
  private static let isCursorHidden = Atomic(false)

  /// Brings the cursor back, when the process is about to end at once.
  static func restore() {
    guard isCursorHidden.exchange(false, ordering: .relaxed) else { return }
    try? OutputFile.standardError.write(showCursor)
  }

  /// The columns of a line that may have colours in it.
  static func width(_ line: String) -> Int {
    guard line.utf8.contains(0x1B) else { return DisplayWidth.of(line) }
    var bare = ""
    var isEscape = false
    for scalar in line.unicodeScalars {
      if scalar == "\u{1B}" {
        isEscape = true
      } else if isEscape {
        isEscape = !scalar.properties.isAlphabetic
      } else {
        bare.unicodeScalars.append(scalar)
      }
    }
    return DisplayWidth.of(bare)
  }
}

extension ProgressRenderer.Style {
  /// What the environment says: `NO_COLOR` (no-color.org), and a locale with another charset than UTF-8.
  init(environment: [String: String]) {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].compactMap { environment[$0] }.first { !$0.isEmpty }
    // No locale at all is what containers have, and their terminals speak UTF-8.
    let charset = locale?.split(separator: ".").dropFirst().first?.lowercased()
    self.init(
      hasColor: environment["NO_COLOR"].map(\.isEmpty) ?? true,
      isASCII: charset.map { $0 != "utf-8" && $0 != "utf8" && !$0.hasPrefix("utf-8@") } ?? false)
  }
}
