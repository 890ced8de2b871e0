import DownpipeCore
import DownpipePOSIX
import Foundation
import HangLimit
import Testing

@testable import DownpipeGzip

@Suite(.endsHangs)
struct GunzipTests {
  static let hello = Array("hello, world\n".utf8)

  /// Well-formed files and their contents.
  static let good: [GzipSample] = [
    GzipSample("a member", GzipSamples.member(hello), hello),
    GzipSample("an empty member", GzipSamples.member([]), []),
    GzipSample("compressed data", GzipSamples.song, GzipSamples.songText),
    GzipSample(
      "every header field",
      GzipSamples.member(hello, extra: [1, 2, 3], name: [0x61], comment: [0x62], headerCRC: true),
      hello
    ),
    GzipSample("an empty extra field", GzipSamples.member(hello, extra: []), hello),
    GzipSample("the text flag", GzipSamples.member(hello, flags: 1), hello),
    GzipSample("a long name", GzipSamples.member(hello, name: [UInt8](repeating: 0x61, count: 300_000)), hello),
    GzipSample("two members", GzipSamples.member(hello) + GzipSamples.song, hello + GzipSamples.songText),
    GzipSample(
      "an empty member between", GzipSamples.member(hello) + GzipSamples.member([]) + GzipSamples.member(hello),
      hello + hello
    ),
    GzipSample("zeros behind", GzipSamples.member(hello) + [UInt8](repeating: 0, count: 700_000), hello),
    GzipSample("a single zero behind", GzipSamples.member(hello) + [0], hello),
    GzipSample(
      "many members", [UInt8]((0..<20_000).map { _ in GzipSamples.member([0x61]) }.joined()),
      [UInt8](repeating: 0x61, count: 20_000)
    ),
    GzipSample(
      "more than a block", GzipSamples.member([UInt8](repeating: 7, count: 1_000_003)),
      [UInt8](repeating: 7, count: 1_000_003)
    ),
  ]

  @Test("a complete file is decompressed, through files and in memory", arguments: good)
  func unpacks(_ sample: GzipSample) async throws {
    #expect(try await Gunzip().unpackedFile(sample.file) == sample.content)
    #expect(try await Gunzip().unpacked(sample.file) == sample.content)
  }

  /// Files that are refused.
  static let bad: [GzipSample] = [
    GzipSample("nothing", []),
    GzipSample("one byte", [0x1F]),
    GzipSample("another magic number", [0x1F, 0x8C] + GzipSamples.member(hello).dropFirst(2)),
    GzipSample("text", Array("<html>404</html>".utf8)),
    GzipSample("zeros", [UInt8](repeating: 0, count: 100)),
    GzipSample("zlib's wrapper", [0x78, 0x9C, 0x03, 0, 0, 0, 0, 1]),
    GzipSample("another method", [0x1F, 0x8B, 7] + GzipSamples.member(hello).dropFirst(3)),
    GzipSample("a reserved flag", GzipSamples.member(hello, flags: 0x20)),
    GzipSample("a wrong header CRC", GzipSamples.member(hello, headerCRC: true, headerCRCOffset: 1)),
    GzipSample("a wrong CRC", GzipSamples.member(hello, crcOffset: 1)),
    GzipSample("a wrong length", GzipSamples.member(hello, lengthOffset: 1)),
    GzipSample("a wrong CRC in the second member", GzipSamples.song + GzipSamples.member(hello, crcOffset: 1)),
    GzipSample("a wrong CRC in an empty member", GzipSamples.song + GzipSamples.member([], crcOffset: 1)),
    GzipSample("garbage behind", GzipSamples.song + Array("garbage".utf8)),
    GzipSample("garbage behind zeros", GzipSamples.song + [0, 0, 0, 1]),
    GzipSample("a member behind zeros", GzipSamples.song + [0, 0] + GzipSamples.song),
    GzipSample("half a magic number behind", GzipSamples.song + [0x1F]),
    GzipSample("a magic number behind", GzipSamples.song + [0x1F, 0x8B]),
  ]

  @Test("an incomplete or invalid gzip file is refused and leaves nothing", arguments: bad)
  func refuses(_ sample: GzipSample) async {
    #expect(await Gunzip().failure(sample.file) == .damaged)
  }

  @Test("trailing bytes can be ignored, unless they start like a member")
  func ignoresTrailingBytes() async throws {
    let gunzip = Gunzip(trailingBytes: .ignore)
    let song = GzipSamples.song
    for rest in [Array("garbage".utf8), [0, 0, 1], [0x1F, 0x8C, 0], [0, 0] + song, [7] + song] {
      #expect(try await gunzip.unpackedFile(song + rest) == GzipSamples.songText)
    }
    for rest in [[0x1F], [0x1F, 0x8B], Array(song.dropLast()), GzipSamples.member([1], crcOffset: 1)] {
      #expect(await gunzip.failure(song + rest) == .damaged)
    }
    #expect(await gunzip.failure(Array("garbage".utf8)) == .damaged)
  }

  @Test("a file that is truncated at any byte is an error")
  func truncation() async {
    let files = [
      GzipSamples.song,
      GzipSamples.member(Self.hello, extra: [1, 2], name: [0x61], comment: [0x62], headerCRC: true),
    ]
    for file in files {
      for count in 0..<file.count {
        #expect(await Gunzip().failure(Array(file[..<count])) == .damaged, "cut at \(count)")
      }
    }
    let two = GzipSamples.song + GzipSamples.member(Self.hello)
    for count in GzipSamples.song.count + 1..<two.count {
      #expect(await Gunzip().failure(Array(two[..<count])) == .damaged, "cut at \(count)")
      #expect(await Gunzip(trailingBytes: .ignore).failure(Array(two[..<count])) == .damaged, "cut at \(count)")
    }
  }

  @Test("a flipped bit is an error, or is in an unused field and changes nothing")
  func flippedBits() async throws {
    let files = [
      (GzipSamples.song, GzipSamples.songText),
      (GzipSamples.song + GzipSamples.member(Self.hello), GzipSamples.songText + Self.hello),
    ]
    for (file, content) in files {
      var harmless: Set<Int> = []
      for bit in 0..<8 * file.count {
        var flipped = file
        flipped[bit / 8] ^= 1 << (bit % 8)
        do {
          let bytes = try await Gunzip().unpacked(flipped)
          #expect(bytes == content, "bit \(bit)")
          harmless.insert(bit / 8)
        } catch {
          #expect((error as? DownloadError)?.code == .damaged, "bit \(bit)")
        }
      }
      // The text flag, the time, the extra flags, the system, and the unused bits of the last byte of data.
      for offset in 3...9 { #expect(harmless.contains(offset)) }
      for offset in harmless.subtracting(3...9) {
        #expect(offset == GzipSamples.song.count - 9 || offset >= GzipSamples.song.count, "byte \(offset)")
      }
    }
  }

  @Test("with a header CRC a flipped bit of the header is an error")
  func flippedHeaderBits() async {
    let file = GzipSamples.member(Self.hello, extra: [1], name: [0x61], comment: [0x62], headerCRC: true)
    for bit in 0..<8 * 19 {
      var flipped = file
      flipped[bit / 8] ^= 1 << (bit % 8)
      if bit == 8 * 3 + 1 { continue }  // the flag of the header CRC itself, which moves the start of the data
      #expect(await Gunzip().failure(flipped) == .damaged, "bit \(bit)")
    }
  }

  @Test("chunks of any size give the same bytes")
  func chunks() throws {
    let file = GzipSamples.song + GzipSamples.member(Self.hello, name: [0x61]) + [0, 0, 0]
    for size in [1, 2, 3, 7, 64, 1000] {
      var decoder = try GzipDecoder(
        limit: OutputLimit(byteCount: .max, explanation: ""), trailingBytes: .refuse)
      var output: [UInt8] = []
      var offset = 0
      while offset < file.count {
        let end = min(offset + size, file.count)
        try decoder.update(file.span.bytes.extracting(offset..<end)) { block in
          block.withUnsafeBytes { output.append(contentsOf: $0) }
        }
        offset = end
      }
      try decoder.finish { block in block.withUnsafeBytes { output.append(contentsOf: $0) } }
      #expect(output == GzipSamples.songText + Self.hello)
      #expect(decoder.memberCount == 2)
    }
  }

  @Test("a cancelled task writes nothing and leaves nothing")
  func cancelled() async throws {
    try await withFolder { folder in
      let path = folder + "/input"
      try Data(GzipSamples.song).write(to: URL(filePath: path))
      let workspace = folder + "/workspace"
      try FileManager.default.createDirectory(atPath: workspace, withIntermediateDirectories: true)
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await Gunzip().process(File(path: path, name: "a.gz"), in: context(workspace: workspace))
      }
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(try FileManager.default.subpathsOfDirectory(atPath: workspace) == [])
    }
  }

  @Test("cancelling stops at the next block of output")
  func cancelledHalfWay() async throws {
    let file = GzipSamples.member([UInt8](repeating: 7, count: 8 << 20))
    let blocks = Counter()
    let task = Task {
      let gunzip = Gunzip()
      let input = try ArtifactBytes(Artifact(location: .memory(file), name: "a.gz"))
      _ = try gunzip.unpack(input, limit: gunzip.limit(forInput: input.byteCount, inMemory: true)) { _ in
        blocks.increment()
        if blocks.value == 3 { withUnsafeCurrentTask { $0?.cancel() } }
      }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(blocks.value == 3)
  }
}
