import DownpipeCore
import Foundation
import HangLimit
import Testing

@testable import DownpipeGzip

@Suite(.endsHangs)
struct GunzipLimitTests {
  /// The number of bytes in the decompressed bomb: one byte and its copies.
  static let copies = (64 << 20) / 258
  static let bombSize = 1 + copies * 258

  /// 64 MiB of zeros, compressed to about 400 KiB.
  static let bomb: [UInt8] = {
    // A fixed-Huffman block: literal 0, then copies of 258 bytes at distance 1, one bit string per copy.
    var bits = BitWriter()
    bits.append(0b011, 3)  // the last block, fixed codes
    bits.appendCode(0b0011_0000, 8)  // literal 0
    for _ in 0..<copies {
      bits.appendCode(0b1100_0101, 8)  // length 258
      bits.appendCode(0, 5)  // distance 1
    }
    bits.appendCode(0, 7)  // the end
    // The CRC-32 of the zeros as a constant: computing it bit by bit takes longer than all other tests.
    let crc: UInt32 = 0x952B_56EA
    return [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255] + bits.bytes + GzipSamples.littleEndian(crc, 4)
      + GzipSamples.littleEndian(UInt32(bombSize), 4)
  }()

  @Test("a bomb of 64 MiB is decompressed without a limit")
  func allowed() async throws {
    let bytes = try await Gunzip().unpackedFile(Self.bomb)
    #expect(bytes.count == Self.bombSize)
    #expect(bytes == [UInt8](repeating: 0, count: Self.bombSize))
  }

  @Test("the limit on the output applies to files and in memory")
  func bounded() async throws {
    let gunzip = Gunzip(maximumOutput: 1 << 20)
    #expect(await gunzip.failure(Self.bomb) == .tooLarge)
    await #expect(throws: DownloadError.self) { try await gunzip.unpacked(Self.bomb) }
  }

  @Test("no byte over the limit is written")
  func writesNothingOver() throws {
    var decoder = try GzipDecoder(
      limit: OutputLimit(byteCount: 1_000_000, explanation: "too large"), trailingBytes: .refuse)
    var written = 0
    #expect(throws: DownloadError(.tooLarge, "too large")) {
      try decoder.update(Self.bomb.span.bytes) { written += $0.byteCount }
    }
    #expect(written <= 1_000_000 && written > 500_000)
  }

  @Test("the limit is exact", arguments: [0, 1, 2, 10])
  func exact(_ count: Int) async throws {
    let file = GzipSamples.member([UInt8](repeating: 1, count: count))
    #expect(try await Gunzip(maximumOutput: Int64(count)).unpackedFile(file).count == count)
    if count > 0 { #expect(await Gunzip(maximumOutput: Int64(count) - 1).failure(file) == .tooLarge) }
  }

  @Test("many members share one limit")
  func members() async {
    let file = [UInt8]((0..<100).map { _ in GzipSamples.member([1, 2, 3]) }.joined())
    #expect(await Gunzip(maximumOutput: 299).failure(file) == .tooLarge)
    #expect(await Gunzip(maximumOutput: 300).failure(file) == nil)
  }

  /// Settings, the size of the compressed file, and the resulting limit.
  static let limits: [(Int64?, Int64?, Int64, Bool, Int64)] = [
    (64 << 30, 256, 0, false, 1 << 30),
    (64 << 30, 256, 1 << 20, false, 1 << 30),
    (64 << 30, 256, 8 << 20, false, 2 << 30),
    (64 << 30, 256, 1 << 30, false, 64 << 30),
    (64 << 30, 256, .max, false, 64 << 30),
    (nil, 256, .max, false, .max),
    (nil, nil, 1, false, .max),
    (nil, nil, 1, true, 256 << 20),
    (100, nil, 1, true, 100),
    (-1, nil, 1, false, 0),
  ]

  @Test("the lowest limit applies", arguments: limits)
  func lowest(_ output: Int64?, _ ratio: Int64?, _ input: Int64, _ inMemory: Bool, _ expected: Int64) {
    let gunzip = Gunzip(maximumOutput: output, maximumRatio: ratio)
    #expect(gunzip.limit(forInput: input, inMemory: inMemory).byteCount == expected)
    if !inMemory { #expect(gunzip.mostOutput(ofBytes: input) == expected) }
  }

  @Test("the defaults are finite")
  func defaults() {
    #expect(Gunzip().maximumOutput == 64 << 30)
    #expect(Gunzip().maximumRatio == 256)
    #expect(Gunzip().summary == "at most 64.0 GiB, at most 256:1")
  }
}

/// A bit string in the order of deflate (RFC 1951 §3.1.1).
struct BitWriter {
  var bytes: [UInt8] = []
  private var used = 8

  /// Appends a number, its lowest bit first.
  mutating func append(_ value: UInt32, _ count: Int) {
    for bit in 0..<count {
      if used == 8 {
        bytes.append(0)
        used = 0
      }
      bytes[bytes.count - 1] |= UInt8(value >> bit & 1) << used
      used += 1
    }
  }

  /// Appends a Huffman code, its highest bit first.
  mutating func appendCode(_ code: UInt32, _ count: Int) {
    for bit in (0..<count).reversed() { append(code >> bit, 1) }
  }
}
