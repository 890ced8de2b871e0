/// A limit for decompressed bytes, and what to tell the user when it is reached.
package struct OutputLimit: Sendable, Hashable {
  package var byteCount: Int64
  /// Names the limit and the way to raise it.
  package var explanation: String

  package init(byteCount: Int64, explanation: String) {
    self.byteCount = byteCount
    self.explanation = explanation
  }

  /// The lowest one of a limit in bytes, a limit on the ratio to the input, and a limit for memory.
  ///
  /// - Parameters:
  ///   - free: The output that the ratio always allows.
  ///   - memory: The limit for output in memory; `nil` for files.
  ///   - verb: What the file does.
  ///   - names: What to raise.
  package static func lowest(
    bytes: Int64?, ratio: Int64?, free: Int64, input: Int64, memory: Int64?, verb: String,
    names: (bytes: String, ratio: String)
  ) -> OutputLimit {
    var limits: [OutputLimit] = []
    if let bytes {
      limits.append(
        OutputLimit(
          byteCount: bytes,
          explanation: "the file \(verb) to more than \(bytes) bytes: raise \(names.bytes) to allow it"))
    }
    if let ratio {
      let most = most(ratio: ratio, free: free, input: input)
      limits.append(
        OutputLimit(
          byteCount: most,
          explanation: "the file of \(input) bytes \(verb) to more than \(most) bytes, as a decompression bomb does: "
            + "raise \(names.ratio) if you trust the file"))
    }
    if let memory {
      limits.append(
        OutputLimit(
          byteCount: memory,
          explanation: "the file \(verb) to more than \(memory) bytes, the limit for memory: use a storage that writes "
            + "files"))
    }
    return limits.min { $0.byteCount < $1.byteCount }
      ?? OutputLimit(byteCount: .max, explanation: "the file \(verb) to more bytes than can be counted")
  }

  /// The most output that a limit on the ratio to the input allows; a follower asks with the bytes that have arrived, because
  /// the announced size may be a lie, and the rest may never come.
  package static func most(ratio: Int64?, free: Int64, input: Int64) -> Int64 {
    guard let ratio else { return .max }
    let (product, isTooMuch) = input.multipliedReportingOverflow(by: ratio)
    return max(free, isTooMuch ? .max : product)
  }
}
