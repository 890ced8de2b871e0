import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import Benchmark

/// The files that are served, and the check of results.
@Suite(.endsHangs)
struct ContentTests {
  @Test func theSameSeedMakesTheSameBytes() throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    var (first, second, other) = (RandomContent(seed: 1), RandomContent(seed: 1), RandomContent(seed: 2))
    let digest = try first.write(1_500_001, to: folder.path("a"))
    #expect(try second.write(1_500_001, to: folder.path("b")) == digest)
    #expect(try other.write(1_500_001, to: folder.path("c")) != digest)
    #expect(Comparing.difference(of: folder.path("b"), from: folder.path("a")) == nil)
    #expect(Comparing.difference(of: folder.path("c"), from: folder.path("a")) != nil)
    // Not zeros: every value of a byte is there.
    #expect(Set(try folder.read("a")).count == 256)
  }

  @Test func wordsCanBeCompressedAsText() throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    var content = RandomContent(seed: 1)
    try content.writeWords(1_048_577, to: folder.path("a"))
    let bytes = try folder.read("a")
    #expect(bytes.count == 1_048_577)
    #expect(Set(bytes.split(separator: UInt8(ascii: " "))).count > 5_000)
  }

  @Test(arguments: [0, 1_048_576, 1_500_000])
  func oneWrongByteIsFound(offset: Int) throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    var bytes = DownloadFixtures.pattern(size: 1_500_001, seed: 1)
    _ = try folder.write(bytes, to: "a")
    bytes[offset] ^= 1
    _ = try folder.write(bytes, to: "b")
    #expect(Comparing.difference(of: folder.path("b"), from: folder.path("a"))?.hasPrefix("b differs") == true)
  }

  @Test func aShortAndAMissingFileAreFound() throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    _ = try folder.write([1, 2], to: "a")
    _ = try folder.write([1], to: "b")
    #expect(Comparing.difference(of: folder.path("b"), from: folder.path("a")) == "b has 1 bytes instead of 2")
    #expect(Comparing.difference(of: folder.path("c"), from: folder.path("a")) == "c is missing")
  }
}
