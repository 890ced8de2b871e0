import Foundation
import HangLimit
import Testing

@testable import DownpipeTesting

@Suite(.endsHangs)
struct FixturesTests {
  @Test func patternsArePrefixesOfOneAnother() {
    let long = DownloadFixtures.pattern(size: 1001)
    for size in [-1, 0, 1, 7, 8, 9, 1000] {
      #expect(DownloadFixtures.pattern(size: size) == Array(long.prefix(max(0, size))))
      // Not a part of the kept one.
      if size > 0 { #expect(DownloadFixtures.make(size, 1) == Array(long.prefix(size))) }
    }
    #expect(DownloadFixtures.pattern(size: 100, seed: 2) != Array(long.prefix(100)))
    #expect(Set(long).count > 200)
  }

  /// The first numbers of SplitMix64 with seed 1234567, as published with the reference implementation.
  @Test func theGeneratorIsSplitMix64() {
    var generator = SeededGenerator(seed: 1_234_567)
    #expect(
      (0..<3).map { _ in generator.next() } == [
        6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
      ])
  }

  @Test func aFolderGoesWhenItIsClosed() throws {
    let folder = try TemporaryFolder()
    try folder.write([1, 2], to: "a/b.bin")
    #expect(try folder.read("a/b.bin") == [1, 2])
    #expect(try folder.contents() == ["a", "a/b.bin"])
    #expect(!folder.path.hasSuffix("/"))
    folder.close()
    folder.close()
    #expect(!FileManager.default.fileExists(atPath: folder.path))
  }

  @Test func aFolderGoesWithItsLastReference() throws {
    var folder: TemporaryFolder? = try TemporaryFolder()
    let path = try #require(folder?.path)
    #expect(FileManager.default.fileExists(atPath: path))
    folder = nil
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}
