/// A bar with eighths of a cell, so that it moves smoothly even when it is short.
struct ProgressBar {
  /// The cells of the bar, its two ends included.
  var columns: Int
  /// Whether only ASCII may be used.
  var isASCII = false

  private static let eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]

  /// The bar of something that is done to a share from 0 to 1.
  func text(fraction: Double) -> String {
    let cells = columns - 2
    guard cells > 0 else { return "" }
    // Not full before it is: a bar that stands at its end and does not finish looks broken.
    let eighths = Int((min(1, max(0, fraction)) * Double(cells * 8)).rounded(.down))
    let (full, rest) = eighths.quotientAndRemainder(dividingBy: 8)
    if isASCII {
      let head = full < cells && fraction > 0 ? ">" : ""
      return frame(String(repeating: "=", count: full) + head, width: full + head.count, cells: cells)
    }
    return frame(
      String(repeating: "█", count: full) + Self.eighths[rest], width: full + (rest > 0 ? 1 : 0), cells: cells)
  }

  /// The bar of something whose end is not known: a block that wanders with time.
  func text(wanderingAt seconds: Double) -> String {
    let cells = columns - 2
    guard cells > 0 else { return "" }
    let block = min(4, cells)
    let way = cells - block
    let step = way == 0 ? 0 : Int(max(0, seconds) * 8) % (2 * way)
    let position = step <= way ? step : 2 * way - step
    let text = String(repeating: " ", count: position) + String(repeating: isASCII ? "=" : "▒", count: block)
    return frame(text, width: position + block, cells: cells)
  }

  private func frame(_ text: String, width: Int, cells: Int) -> String {
    let ends = isASCII ? ("[", "]") : ("▕", "▏")
    return ends.0 + text + String(repeating: " ", count: cells - width) + ends.1
  }
}
