import ArgumentParser
import Downpipe

/// The value of `--limit-rate` and `--fleet-limit-rate`.
enum SpeedLimit {
  /// Parses a number of bytes for each second: `500k`, `2M`, `1.5MB`.
  static func rate(_ text: String) throws -> ByteRate {
    guard let size = ByteSize(text), size.bytes > 0 else {
      throw ValidationError("give the bytes for each second, such as 500k or 2M")
    }
    return .bytesPerSecond(size.bytes)
  }
}
