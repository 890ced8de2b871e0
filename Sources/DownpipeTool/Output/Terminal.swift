import Foundation

/// The lower end of a terminal, redrawn in place. A frame is one write, and overwrites the last frame without erasing
/// it first: nothing flickers.
struct Terminal {
  private let output: OutputFile
  /// The widths of the lines of the last frame.
  private var drawn: [Int] = []
  private var isCursorHidden = false

  init(_ output: OutputFile) { self.output = output }

  /// 80 by 24 where the terminal does not say.
  var size: (columns: Int, rows: Int) {
    var size = winsize()
    guard ioctl(output.descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (80, 24) }
    return (Int(size.ws_col), size.ws_row > 0 ? Int(size.ws_row) : 24)
  }

  /// Draws `frame` in place of the last one. The lines `above` it stay.
  mutating func draw(above: [String], frame: [String]) throws {
    try output.write(text(above: above, frame: frame, columns: size.columns))
  }

  mutating func text(above: [String], frame: [String], columns: Int) -> String {
    // A terminal that has become narrower has wrapped the lines of the last frame.
    let rows = drawn.reduce(0) { $0 + max(1, ($1 + columns - 1) / max(1, columns)) }
    let start = (isCursorHidden ? "" : "\u{1B}[?25l") + (rows > 0 ? "\r\u{1B}[\(rows)A" : "\r")
    isCursorHidden = true
    drawn = frame.map(Self.width)
    return start + (above + frame).map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J"
  }

  /// Removes the frame and shows the cursor.
  mutating func end(above: [String]) throws {
    guard isCursorHidden || !above.isEmpty else { return }
    let text = text(above: above, frame: [], columns: size.columns) + "\u{1B}[?25h"
    isCursorHidden = false
    try output.write(text)
  }

  /// Shows the cursor of a process that is about to exit at once.
  static func restore() {
    if OutputFile.standardError.isTerminal { try? OutputFile.standardError.write("\u{1B}[?25h") }
  }

  /// The columns of a line without its colours.
  static func width(_ line: String) -> Int {
    line.split(separator: "\u{1B}[", omittingEmptySubsequences: false).enumerated().reduce(0) { sum, part in
      let text = part.offset == 0 ? part.element : part.element.drop { $0 != "m" }.dropFirst()
      return sum + String(text).columns
    }
  }
}
