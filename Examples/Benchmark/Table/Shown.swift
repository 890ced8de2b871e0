import Foundation

/// Numbers as text, with three digits.
enum Shown {
  static func seconds(_ seconds: Double) -> String {
    if seconds < 1 { return digits(seconds * 1e3) + " ms" }
    return digits(seconds) + " s"
  }

  static func bytes(_ bytes: Int64) -> String { Shown.bytes(Double(bytes)) }

  static func bytes(_ bytes: Double) -> String {
    var value = bytes
    var units = ["B", "KiB", "MiB", "GiB"][...]
    while value >= 1024, units.count > 1 {
      value /= 1024
      units.removeFirst()
    }
    return digits(value) + " " + units[units.startIndex]
  }

  static func ratio(_ ratio: Double) -> String { String(format: "%.2f ×", ratio) }

  static func value(_ value: Double, of measure: Must.Measure) -> String {
    switch measure {
    case .wall, .cpu: seconds(value)
    case .memory, .memoryEach, .fetched: bytes(value)
    }
  }

  private static func digits(_ value: Double) -> String {
    if value == value.rounded(), value < 1e6 { return String(format: "%.0f", value) }
    return String(format: value >= 99.95 ? "%.0f" : value >= 9.995 ? "%.1f" : "%.2f", value)
  }
}
