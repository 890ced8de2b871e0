import Downpipe
import Foundation

/// Makes files of random bytes, and of random words, which can be compressed.
struct RandomContent {
  private var state: UInt64

  init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

  /// xorshift64*: fast, and without patterns that a compression finds.
  private mutating func next() -> UInt64 {
    state ^= state >> 12
    state ^= state << 25
    state ^= state >> 27
    return state &* 0x2545_F491_4F6C_DD1D
  }

  private mutating func bytes(_ count: Int) -> [UInt8] {
    let words = (count + 7) / 8
    var numbers = [UInt64](repeating: 0, count: words)
    for index in numbers.indices { numbers[index] = next() }
    return numbers.withUnsafeBytes { Array($0.prefix(count)) }
  }

  /// Writes a file of random bytes.
  /// - Returns: Its SHA-256.
  @discardableResult
  mutating func write(_ size: Int64, to path: String) throws -> String {
    try Self.write(size, to: path) { bytes($0) }
  }

  /// Writes a file of random words, which gzip makes three times smaller.
  @discardableResult
  mutating func writeWords(_ size: Int64, to path: String) throws -> String {
    let vocabulary = (0..<8_192).map { _ in
      (0..<(3 + Int(next() % 8))).map { _ in UInt8(ascii: "a") + UInt8(next() % 26) } + [UInt8(ascii: " ")]
    }
    return try Self.write(size, to: path) { count in
      var text: [UInt8] = []
      text.reserveCapacity(count + 16)
      while text.count < count {
        // Small numbers are frequent, as the frequent words of a language.
        let number = next()
        text += vocabulary[Int(((number & 0x1FFF) * ((number >> 16) & 0x1FFF)) >> 13)]
      }
      text.removeLast(text.count - count)
      return text
    }
  }

  private static func write(_ size: Int64, to path: String, _ block: (Int) -> [UInt8]) throws -> String {
    guard FileManager.default.createFile(atPath: path, contents: nil) else {
      throw BenchmarkError("\(path) cannot be written")
    }
    let file = try FileHandle(forWritingTo: URL(filePath: path))
    defer { try? file.close() }
    var digest = try DigestComputation(.sha256)
    var left = size
    while left > 0 {
      let bytes = block(Int(min(left, 1 << 20)))
      digest.update(bytes.span.bytes)
      try file.write(contentsOf: Data(bytes))
      left -= Int64(bytes.count)
    }
    return digest.finalize().hex
  }
}
