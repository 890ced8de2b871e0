import Synchronization

/// Common fixtures for tests of downloads.
public enum DownloadFixtures {
  /// The patterns so far, the longest one of each seed.
  private static let patterns = Mutex<[UInt64: [UInt8]]>([:])
  /// The size up to which they are kept, and the number of seeds.
  private static let (largestKept, mostKept) = (8 << 20, 16)

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
      guard size <= largestKept, patterns.count < mostKept || patterns[seed] != nil else { return }
      patterns[seed] = new
    }
    return new
  }

  private static func make(_ size: Int, _ seed: UInt64) -> [UInt8] {
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
