#if LIBCURL
  /// How an object is divided into parts.
  ///
  /// The storage takes at most 10,000 parts, of at least 5 MiB but for the last one. If the size is not known, parts double
  /// every thousand parts.
  struct PartPlan: Sendable, Hashable, Codable {
    static let mostParts = 10_000
    private static let unit: Int64 = 1 << 20

    /// The size of the first part, in bytes.
    let partSize: Int64
    /// Whether the parts grow.
    let isGrowing: Bool

    /// - Parameter byteCount: The size of the object; `nil` if it is not known yet.
    init(partSize: Int64, byteCount: Int64?) {
      isGrowing = byteCount == nil
      let least = (byteCount ?? 0) / Int64(Self.mostParts) + 1
      self.partSize = max(partSize, (least + Self.unit - 1) / Self.unit * Self.unit)
    }

    /// The bytes of a part, from 1, of an object without end.
    func range(of number: Int) -> Range<Int64> {
      guard isGrowing else {
        let start = Int64(number - 1) * partSize
        return start..<start + partSize
      }
      var start: Int64 = 0
      var size = partSize
      var first = 1
      while number >= first + 1000 {
        (start, size, first) = (start + size * 1000, size * 2, first + 1000)
      }
      start += Int64(number - first) * size
      return start..<start + size
    }

    /// The parts of an object; `nil` if there are more than the storage takes.
    func parts(of byteCount: Int64) -> [Range<Int64>]? {
      var parts: [Range<Int64>] = []
      while (parts.last?.upperBound ?? 0) < byteCount {
        guard parts.count < Self.mostParts else { return nil }
        let range = range(of: parts.count + 1)
        parts.append(range.lowerBound..<min(range.upperBound, byteCount))
      }
      return parts
    }
  }
#endif
