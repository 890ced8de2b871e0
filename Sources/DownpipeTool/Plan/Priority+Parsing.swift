import ArgumentParser
import Downpipe

extension Priority {
  /// Parses the value of `--priority`.
  static func parse(_ text: String) throws -> Priority {
    switch text {
    case "high": return .high
    case "normal": return .normal
    case "low": return .low
    default:
      guard let level = Int16(text) else {
        throw ValidationError("give high, normal, low, or a number from \(Int16.min) to \(Int16.max)")
      }
      return Priority(level)
    }
  }
}
