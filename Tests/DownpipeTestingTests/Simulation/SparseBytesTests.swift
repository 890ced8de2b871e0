import DownpipeCore
import HangLimit
import Testing

@testable import DownpipeTesting

/// The bytes of simulated files, beside plain arrays.
@Suite(.endsHangs)
struct SparseBytesTests {
  /// Sparse bytes and the same bytes as an array, with the offsets that were written.
  private struct Pair {
    var sparse = SparseBytes()
    var plain: [UInt8] = []
    var written: Set<Int> = []

    mutating func write(_ bytes: [UInt8], at offset: Int) {
      if bytes.isEmpty { return }
      if plain.count < offset + bytes.count {
        plain += [UInt8](repeating: 0, count: offset + bytes.count - plain.count)
      }
      plain.replaceSubrange(offset..<offset + bytes.count, with: bytes)
      written.formUnion(offset..<offset + bytes.count)
    }

    mutating func truncate(to size: Int) {
      sparse.truncate(to: Int64(size))
      plain = Array(plain.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - plain.count))
      written = written.filter { $0 < size }
    }
  }

  private func bytes(_ count: Int, _ generator: inout SeededGenerator) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
  }

  /// Changes a pair at random, by one operation of each kind that a disk needs.
  private func change(_ pair: inout Pair, beside other: Pair, _ generator: inout SeededGenerator) {
    let (offset, count) = (Int.random(in: 0..<200, using: &generator), Int.random(in: 0..<60, using: &generator))
    switch Int.random(in: 0..<10, using: &generator) {
    case 0..<3:
      let bytes = bytes(count, &generator)
      bytes.withUnsafeBytes { pair.sparse.write($0.bytes, at: Int64(offset)) }
      pair.write(bytes, at: offset)
    case 3..<6:
      // Often the part of the pattern that belongs here, so that parts continue each other; also across its end.
      let start = Int.random(in: 0..<3, using: &generator) == 0 ? Int(BytePattern.count) - 20 : 1_000 + offset
      BytePattern.withSpan(from: Int64(start), count: count) { pair.sparse.write($0, at: Int64(offset)) }
      pair.write((start..<start + count).map { BytePattern.byte(at: Int64($0)) }, at: offset)
    case 6..<8:
      // As after a loss of power: some of the bytes of another state of the file.
      let range = offset..<offset + count
      pair.sparse.write(Int64(range.lowerBound)..<Int64(range.upperBound), of: other.sparse)
      for index in range where other.written.contains(index) { pair.write([other.plain[index]], at: index) }
    default: pair.truncate(to: Int.random(in: 0..<260, using: &generator))
    }
  }

  @Test("random operations have the same result as with an array", arguments: 0..<100 as Range<UInt64>)
  func operations(_ seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var (pair, other) = (Pair(), Pair())
    for _ in 0..<60 {
      change(&pair, beside: other, &generator)
      change(&other, beside: pair, &generator)
      try #require(pair.sparse.size == Int64(pair.plain.count))
      try #require(pair.sparse.read(0..<pair.sparse.size) == pair.plain)
      let start = Int.random(in: 0..<100, using: &generator)
      let end = start + Int.random(in: 0..<200, using: &generator)
      let part = (start..<end).clamped(to: pair.plain.indices)
      #expect(pair.sparse.read(Int64(start)..<Int64(end)) == Array(pair.plain[part]))
      let ranges = pair.written.reduce(into: ByteRangeSet()) { $0.insert(contentsOf: Int64($1)..<Int64($1) + 1) }
      try #require(pair.sparse.ranges == ranges)
    }
  }

  @Test("bytes equal a file when they are all of its bytes, in all orders of writing")
  func equality() {
    let content = FileContent(position: BytePattern.count - 50, size: 120)
    let whole = SparseBytes(content)
    let all = whole.read(0..<120)
    #expect(all == (0..<120).map { BytePattern.byte(at: content.position + $0) })
    #expect(whole.equals(content))
    #expect(whole.digest == content.digest)

    var parts = SparseBytes()
    for start in [80, 0, 40] as [Int64] {
      BytePattern.withSpan(from: content.position + start, count: 40) { parts.write($0, at: start) }
      #expect(parts.equals(content) == (start == 40))
    }
    #expect(parts.digest == content.digest)

    var copy = SparseBytes()
    all.withUnsafeBytes { copy.write($0.bytes, at: 0) }
    #expect(copy.equals(content), "other memory with the same bytes")
    #expect(!copy.equals(FileContent(position: content.position + 1, size: 120)))
    #expect(!copy.equals(FileContent(position: content.position, size: 119)))
    copy.truncate(to: 119)
    copy.truncate(to: 120)
    #expect(!copy.equals(content), "a gap")
    #expect(SparseBytes().equals(FileContent(position: 7, size: 0)))
  }

  @Test("a mark depends on the bytes, not on how they are kept")
  func marks() {
    let content = FileContent(position: 500, size: 99)
    let whole = SparseBytes(content)
    var copy = SparseBytes()
    whole.read(0..<99).withUnsafeBytes { copy.write($0.bytes, at: 0) }
    #expect(whole.mark(10..<99) == copy.mark(10..<99))
    #expect(whole.mark(10..<99) != whole.mark(11..<99))
  }

  @Test("parts of the pattern larger than the pattern are served")
  func large() {
    let content = FileContent(position: 3, size: 3 * BytePattern.count + 5)
    let bytes = SparseBytes(content).read(BytePattern.count * 2 - 1..<content.size)
    #expect(bytes.count == Int(BytePattern.count) + 6)
    #expect(bytes.first == BytePattern.byte(at: 2))
    #expect(bytes.last == BytePattern.byte(at: 7))
  }
}
