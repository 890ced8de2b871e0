package import DownpipeCore

/// The stored form of block marks: `0-65536:sha-256:4f2a…;…`.
package enum BlockMarkText {
  /// The text; `nil` if there is no mark.
  package static func text(_ marks: [BlockMark]) -> String? {
    guard !marks.isEmpty else { return nil }
    return marks.map { mark in
      "\(mark.range.lowerBound)-\(mark.range.upperBound):\(mark.digest.algorithm.name):\(mark.digest.hex)"
    }.joined(separator: ";")
  }

  /// Decodes the form that ``text(_:)`` returns; `nil` for any other text.
  package static func marks(_ text: String) -> [BlockMark]? {
    var marks: [BlockMark] = []
    for part in text.split(separator: ";", omittingEmptySubsequences: false) {
      let fields = part.split(separator: ":", omittingEmptySubsequences: false)
      guard fields.count == 3, let set = ByteRangeSet(storedText: fields[0]), let range = set.ranges.first,
        set.ranges.count == 1, let digest = FileDigest(DigestAlgorithm(String(fields[1])), hex: String(fields[2]))
      else { return nil }
      marks.append(BlockMark(range: range, digest: digest))
    }
    return marks
  }
}
