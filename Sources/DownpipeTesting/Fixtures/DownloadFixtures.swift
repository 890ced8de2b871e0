/// Things that tests of downloads need again and again.
public enum DownloadFixtures {
  /// Bytes that look random and are the same for the same seed, so that a byte at a wrong position,
  /// twice or left out shows up in a comparison. A shorter pattern is the beginning of a longer one.
  ///
  /// - Parameters:
  ///   - size: how many bytes; nothing when negative.
  ///   - seed: another seed gives other bytes.
  public static func pattern(size: Int, seed: UInt64 = 1) -> [UInt8] {
    guard size > 0 else { return [] }
    var generator = SeededGenerator(seed: seed)
    return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
      let memory = UnsafeMutableRawBufferPointer(buffer)
      var index = 0
      // Whole words, since unoptimised builds make patterns of many megabytes too.
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
