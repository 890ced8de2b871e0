import Synchronization

/// Common fixtures for tests of downloads.
public enum DownloadFixtures {
  /// The longest pattern so far of each seed, as far as they fit: tests ask for the same ones again and again.
  private static let patterns = Mutex<[UInt64: [UInt8]]>([:])
  private static let mostBytesKept = 32 << 20

  /// Pseudo-random bytes that depend only on the seed, so that a comparison detects misplaced, duplicated and missing
  /// bytes. A shorter pattern is a prefix of a longer one.
  ///
  /// - Parameters:
  ///   - size: The number of bytes; the pattern is empty when it is negative.
  ///   - seed: Selects the pattern.
  public static func pattern(size: Int, seed: UInt64 = 1) -> [UInt8] {
    guard size > 0 else { return [] }
    if let kept = patterns.withLock({ $0[seed] }), kept.count >= size {
      return kept.count == size ? kept : Array(kept[..<size])
    }
    let new = make(size, seed)
    patterns.withLock { patterns in
      let kept = patterns[seed]?.count ?? 0
      // Another thread may have made a longer one.
      guard kept < size, patterns.values.reduce(size - kept, { $0 + $1.count }) <= mostBytesKept else { return }
      patterns[seed] = new
    }
    return new
  }

  /// Makes a pattern of at least one byte.
  static func make(_ size: Int, _ seed: UInt64) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      let memory = UnsafeMutableRawBufferPointer(buffer)
      var index = 0
      // Whole words, because unoptimized builds also make patterns of many megabytes.
      while size - index >= 8 {
        memory.storeBytes(of: generator.next().littleEndian, toByteOffset: index, as: UInt64.self)
        index += 8
      }
      var word = generator.next()
      while index < size {
        memory[index] = UInt8(truncatingIfNeeded: word)
        word >>= 8
        index += 1
      }
      count = size
    }
  }
}
