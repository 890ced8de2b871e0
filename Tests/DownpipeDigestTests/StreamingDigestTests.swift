import Testing

@testable import DownpipeDigest

@Suite
struct StreamingDigestTests {
  private static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  @Test("published vectors", arguments: DigestVectors.digests)
  func vectors(_ function: HashFunction, _ text: String, _ hex: String) throws {
    #expect(Self.hex(try function.digest(of: Array(text.utf8))) == hex)
    if function == .sha256 { #expect(Self.hex(sha256(Array(text.utf8))) == hex) }
  }

  @Test("published long vectors, in chunks of any size", arguments: DigestVectors.millions)
  func longVectors(_ function: HashFunction, _ hex: String) throws {
    for size in [1_000_000, 65_537, 63] {
      let block = [UInt8](repeating: UInt8(ascii: "a"), count: size)
      var digest = try StreamingDigest(function)
      var left = 1_000_000
      while left > 0 {
        let count = min(left, size)
        digest.update(block.span.bytes.extracting(first: count))
        left -= count
      }
      #expect(Self.hex(digest.finalize()) == hex, "chunks of \(size)")
    }
  }

  @Test("chunks of random sizes, also empty ones, make no difference", arguments: HashFunction.allCases)
  func chunks(_ function: HashFunction) throws {
    var state: UInt64 = 48
    func next() -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33)
    }
    let bytes = (0..<10_000).map { _ in UInt8(truncatingIfNeeded: next()) }
    let whole = try function.digest(of: bytes)
    for _ in 0..<50 {
      var digest = try StreamingDigest(function)
      var offset = 0
      while offset < bytes.count {
        let count = min(next() % 300, bytes.count - offset)
        digest.update(bytes.span.bytes.extracting(offset..<offset + count))
        offset += count
        // A digest in between changes nothing.
        if next() % 20 == 0 { _ = digest.finalize() }
      }
      #expect(digest.finalize() == whole)
    }
  }

  @Test("a copy continues independently", arguments: HashFunction.allCases)
  func copies(_ function: HashFunction) throws {
    let (first, second, third) = (Array("one".utf8), Array("two".utf8), Array("three".utf8))
    var digest = try StreamingDigest(function)
    digest.update(first.span.bytes)
    let kept = digest
    var other = digest
    digest.update(second.span.bytes)
    other.update(third.span.bytes)
    #expect(try kept.finalize() == function.digest(of: first))
    #expect(try digest.finalize() == function.digest(of: first + second))
    #expect(try other.finalize() == function.digest(of: first + third))
    #expect(try StreamingDigest(function).finalize() == function.digest(of: []))
  }

  @Test("copies of one digest are used at the same time")
  func threads() async throws {
    let block = [UInt8](repeating: 7, count: 1 << 16)
    var digest = try StreamingDigest(.sha256)
    digest.update(block.span.bytes)
    let start = digest
    let results = await withTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<32 {
        group.addTask {
          var copy = start
          for _ in 0..<20 {
            copy.update(block.span.bytes)
            _ = start.finalize()
          }
          return copy.finalize()
        }
      }
      return await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
    }
    let all = [UInt8](repeating: 7, count: 21 << 16)
    #expect(try results == [HashFunction.sha256.digest(of: all)])
  }

  @Test("published codes", arguments: DigestVectors.codes)
  func authenticationCodes(_ code: DigestVectors.Code) throws {
    #expect(Self.hex(try code.function.authenticationCode(of: code.message, key: code.key)) == code.hex)
  }

  @Test("secrets are equal when all their bytes are")
  func comparison() {
    let secret = (0..<64).map { UInt8($0) }
    #expect(constantTimeEqual(secret, secret))
    #expect(constantTimeEqual([], []))
    #expect(!constantTimeEqual(secret, []))
    #expect(!constantTimeEqual(secret, Array(secret.dropLast())))
    for index in secret.indices {
      var other = secret
      other[index] ^= 0x80
      #expect(!constantTimeEqual(secret, other))
    }
  }
}
