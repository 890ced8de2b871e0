import ArgumentParser
import Downpipe

/// The value of `--limit-rate`.
enum SpeedLimit {
  /// Parses a number of bytes for each second: `500k`, `2M`, `1.5MB`.
  static func rate(_ text: String) throws -> ByteRate {
    guard let size = ByteSize(text), size.bytes > 0 else {
      throw ValidationError("give the bytes for each second, such as 500k or 2M")
    }
    return .bytesPerSecond(size.bytes)
  }
}

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
