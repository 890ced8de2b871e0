/// The wall times as an SVG of bars with their spread, for light and dark backgrounds.
struct Chart {
  let results: Results

  private static let width = 760.0
  private static let labelWidth = 90.0
  private static let barWidth = 520.0
  private static let barHeight = 16.0
  private static let step = 22.0

  var text: String {
    var y = 34.0
    var shapes: [String] = [
      Self.label(
        "Wall time: median of \(results.runs), least and greatest. Dashed: the least that the servers permit.", 0, 14,
        "title")
    ]
    for row in results.rows where !row.entries.isEmpty {
      shapes.append(Self.label(row.title, 0, y + 12, "row"))
      y += Self.step
      let most = row.entries.flatMap(\.wallSeconds).max() ?? 1
      if let ideal = row.ideal, ideal <= most {
        let x = Self.labelWidth + ideal / most * Self.barWidth
        let height = Self.step * Double(row.entries.count)
        shapes.append(Self.line(x, y - 2, x, y + height - 2, "ideal"))
      }
      for entry in row.entries {
        shapes += bar(entry, at: y, most: most)
        y += Self.step
      }
      y += 14
    }
    for line in results.machine.lines {
      shapes.append(Self.label(line, 0, y + 6, "note"))
      y += 14
    }
    let height = Self.number(y + 12)
    let width = Self.number(Self.width + 24)
    return """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -4 \(width) \(height)" \
      width="\(width)" height="\(height)" role="img" aria-label="Wall times of Downpipe and other programs">
      <style>\(Self.style)</style>
      <rect class="page" x="-12" y="-4" width="\(width)" height="\(height)"/>
      \(shapes.joined(separator: "\n"))
      </svg>

      """
  }

  private func bar(_ entry: Entry, at y: Double, most: Double) -> [String] {
    var shapes = [Self.label(entry.program, 0, y + 12, "program")]
    let start = Self.labelWidth
    guard entry.failure == nil, let median = entry.wallSeconds.median, let least = entry.wallSeconds.min(),
      let greatest = entry.wallSeconds.max()
    else {
      return shapes + [Self.label("no result", start + 4, y + 12, "program")]
    }
    let scale = Self.barWidth / most
    let kind = entry.program == DownpipePeer.title ? "own" : "other"
    shapes.append(
      "<rect class=\"\(kind)\" x=\"\(Self.number(start))\" y=\"\(Self.number(y))\" "
        + "width=\"\(Self.number(max(1, median * scale)))\" height=\"\(Self.number(Self.barHeight))\" rx=\"2\"/>")
    if entry.wallSeconds.count > 1 {
      let middle = y + Self.barHeight / 2
      let (left, right) = (start + least * scale, start + greatest * scale)
      shapes.append(Self.line(left, middle, right, middle, "spread"))
      for x in [left, right] { shapes.append(Self.line(x, middle - 4, x, middle + 4, "spread")) }
    }
    shapes.append(Self.label(Shown.seconds(median), start + greatest * scale + 8, y + 12, "time"))
    return shapes
  }

  private static let style = """
    text { font: 12px system-ui, sans-serif; fill: #1f2328; }
    .title, .row { font-weight: 600; } .note { font-size: 9px; fill: #59636e; } .program { fill: #59636e; }
    .page { fill: #ffffff; } .own { fill: #0969da; } .other { fill: #afb8c1; }
    .spread { stroke: #1f2328; } .ideal { stroke: #1a7f37; stroke-dasharray: 3 3; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; } .note, .program { fill: #9198a1; }
      .page { fill: #0d1117; } .own { fill: #4493f8; } .other { fill: #57606a; }
      .spread { stroke: #e6edf3; } .ideal { stroke: #3fb950; }
    }
    """

  private static func label(_ text: String, _ x: Double, _ y: Double, _ kind: String) -> String {
    let escaped = text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
    return "<text class=\"\(kind)\" x=\"\(number(x))\" y=\"\(number(y))\">\(escaped)</text>"
  }

  private static func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ kind: String) -> String {
    "<line class=\"\(kind)\" x1=\"\(number(x1))\" y1=\"\(number(y1))\" x2=\"\(number(x2))\" y2=\"\(number(y2))\"/>"
  }

  private static func number(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}
