import DownpipeCore

/// The bytes of simulated files: parts of one fixed pattern, so that serving, storing and comparing them costs no copies.
enum BytePattern {
  /// A prime number, so that files of usual sizes do not repeat in a regular way.
  static let count: Int64 = 1_048_583

  /// The pattern, twice, so that each part of up to ``count`` bytes is contiguous.
  private static let bytes: [UInt8] = {
    let once = DownloadFixtures.pattern(size: Int(count), seed: 0xD0E)
    return once + once
  }()

  /// Passes a part of the pattern of at most ``count`` bytes on.
  static func withSpan<Result>(from position: Int64, count: Int, _ body: (RawSpan) throws -> Result) rethrows -> Result
  {
    let start = Int(position % Self.count)
    return try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[start..<start + count]).bytes) }
  }

  /// The position of bytes that are a part of the pattern in memory; `nil` for other bytes.
  static func position(of span: RawSpan) -> Int64? {
    span.withUnsafeBytes { buffer in
      guard let address = buffer.baseAddress else { return nil }
      let offset = bytes.withUnsafeBytes { $0.baseAddress.map { address - $0 } ?? -1 }
      return offset >= 0 && offset + buffer.count <= 2 * Int(count) ? Int64(offset) % count : nil
    }
  }

  static func byte(at position: Int64) -> UInt8 { bytes[Int(position % count)] }
}

/// One version of a simulated file.
struct FileContent: Sendable, Hashable {
  /// Where in the pattern the file begins.
  let position: Int64
  let size: Int64
  /// The number of the version, for reports.
  var version = 1

  /// The digest of a whole file, computed from what it is.
  var digest: FileDigest { SparseBytes.digest(position: position, size: size) }
}

/// Bytes with gaps, as extents. Parts of the pattern take no memory.
struct SparseBytes: Sendable {
  private enum Piece: Sendable {
    /// A part of the pattern from a position on.
    case pattern(Int64)
    case bytes([UInt8])
  }
  private struct Extent: Sendable {
    var range: ByteRange
    var piece: Piece

    /// The part of the extent in a range, which it overlaps.
    func clamped(to other: ByteRange) -> Extent {
      let part = range.clamped(to: other)
      let skipped = part.lowerBound - range.lowerBound
      return switch piece {
      case .pattern(let position): Extent(range: part, piece: .pattern((position + skipped) % BytePattern.count))
      case .bytes(let bytes):
        Extent(range: part, piece: .bytes(Array(bytes[Int(skipped)..<Int(skipped) + Int(part.count)])))
      }
    }
  }

  /// Sorted, without overlaps.
  private var extents: [Extent] = []
  private(set) var size: Int64 = 0

  /// The ranges that were written.
  var ranges: ByteRangeSet { extents.reduce(into: ByteRangeSet()) { $0.insert(contentsOf: $1.range) } }

  init() {}

  init(_ content: FileContent) {
    size = content.size
    if size > 0 { extents = [Extent(range: 0..<size, piece: .pattern(content.position % BytePattern.count))] }
  }

  mutating func write(_ span: RawSpan, at offset: Int64) {
    guard span.byteCount > 0 else { return }
    let range = offset..<offset + Int64(span.byteCount)
    if let position = BytePattern.position(of: span) {
      write(Extent(range: range, piece: .pattern(position)))
    } else {
      write(Extent(range: range, piece: .bytes(span.withUnsafeBytes { Array($0) })))
    }
  }

  /// Writes a range of other bytes at the same place.
  mutating func write(_ range: ByteRange, of other: SparseBytes) {
    for extent in other.extents where extent.range.overlaps(range) { write(extent.clamped(to: range)) }
  }

  private mutating func write(_ extent: Extent) {
    remove(extent.range)
    size = max(size, extent.range.upperBound)
    var index = extents.firstIndex { $0.range.lowerBound > extent.range.lowerBound } ?? extents.endIndex
    extents.insert(extent, at: index)
    // Parts of the pattern that continue each other become one extent.
    while index > 0, joins(index - 1) { index -= 1 }
    while joins(index) {}
  }

  /// Joins an extent with the next one, if the two continue each other.
  private mutating func joins(_ index: Int) -> Bool {
    guard index + 1 < extents.count, extents[index].range.upperBound == extents[index + 1].range.lowerBound,
      case .pattern(let first) = extents[index].piece, case .pattern(let second) = extents[index + 1].piece,
      (first + Int64(extents[index].range.count)) % BytePattern.count == second
    else { return false }
    extents[index].range = extents[index].range.lowerBound..<extents[index + 1].range.upperBound
    extents.remove(at: index + 1)
    return true
  }

  private mutating func remove(_ range: ByteRange) {
    guard extents.contains(where: { $0.range.overlaps(range) }) else { return }
    extents = extents.flatMap { extent -> [Extent] in
      guard extent.range.overlaps(range) else { return [extent] }
      let before = extent.range.lowerBound..<max(extent.range.lowerBound, range.lowerBound)
      let after = min(extent.range.upperBound, range.upperBound)..<extent.range.upperBound
      return [before, after].filter { !$0.isEmpty }.map(extent.clamped)
    }
  }

  mutating func truncate(to size: Int64) {
    if size < self.size { remove(size..<self.size) }
    self.size = size
  }

  /// The bytes in a range, as far as the file goes; zeros in gaps.
  func read(_ range: ByteRange) -> [UInt8] {
    let range = range.clamped(to: 0..<size)
    var bytes = [UInt8](repeating: 0, count: range.count)
    for extent in extents where extent.range.overlaps(range) {
      let part = extent.clamped(to: range)
      let start = Int(part.range.lowerBound - range.lowerBound)
      switch part.piece {
      case .bytes(let own): bytes.replaceSubrange(start..<start + own.count, with: own)
      case .pattern(let position):
        var done = 0
        while done < part.range.count {
          let count = min(part.range.count - done, Int(BytePattern.count))
          BytePattern.withSpan(from: position + Int64(done), count: count) { span in
            span.withUnsafeBytes { source in
              bytes.withUnsafeMutableBytes { target in
                UnsafeMutableRawBufferPointer(rebasing: target[(start + done)..<(start + done + count)]).copyMemory(
                  from: source)
              }
            }
          }
          done += count
        }
      }
    }
    return bytes
  }

  /// Whether the bytes are those of a file.
  func equals(_ content: FileContent) -> Bool {
    guard size == content.size else { return false }
    if let position = onlyPosition { return position == content.position % BytePattern.count }
    guard ranges == (size > 0 ? ByteRangeSet(0..<size) : ByteRangeSet()) else { return false }
    return read(0..<size) == SparseBytes(content).read(0..<size)
  }

  /// The position in the pattern, if the bytes are one part of it.
  private var onlyPosition: Int64? {
    guard extents.count == 1, extents[0].range == 0..<size, case .pattern(let position) = extents[0].piece else {
      return nil
    }
    return position
  }

  // MARK: Digests

  /// The algorithm of the simulation's digests, which are no real ones.
  static let algorithm = DigestAlgorithm("simulated")

  /// The digest of the bytes.
  var digest: FileDigest {
    if let position = onlyPosition { return Self.digest(position: position, size: size) }
    return FileDigest(Self.algorithm, bytes: Self.hash(read(0..<size), seed: 2))
  }

  static func digest(position: Int64, size: Int64) -> FileDigest {
    let values = [position % BytePattern.count, size]
    return FileDigest(algorithm, bytes: values.flatMap { value in withUnsafeBytes(of: value.bigEndian) { Array($0) } })
  }

  /// A mark of a block, for the tail of a partial.
  func mark(_ range: ByteRange) -> FileDigest {
    FileDigest(DigestAlgorithm("fnv-1a-64"), bytes: Self.hash(read(range), seed: 1))
  }

  /// FNV-1a over words of eight bytes.
  private static func hash(_ bytes: [UInt8], seed: UInt64) -> [UInt8] {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ seed
    bytes.withUnsafeBytes { memory in
      var index = 0
      while memory.count - index >= 8 {
        hash = (hash ^ memory.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian) &* 0x100_0000_01B3
        index += 8
      }
      while index < memory.count {
        hash = (hash ^ UInt64(memory[index])) &* 0x100_0000_01B3
        index += 1
      }
    }
    return withUnsafeBytes(of: (hash ^ UInt64(bytes.count)).bigEndian) { Array($0) }
  }
}
