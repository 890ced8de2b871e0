#if Archive
  import DownpipeCore
  import DownpipeGzip
  import DownpipePOSIX
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeArchive

  @Suite(.endsHangs)
  struct DecompressTests {
    static let programs = [("gzip", "gz"), ("xz", "xz"), ("zstd", "zst"), ("bzip2", "bz2"), ("lz4", "lz4")]
    static let content = DownloadFixtures.pattern(size: 300_000) + [UInt8](repeating: 0, count: 500_000)

    /// Decompresses through files and in memory.
    func unpack(
      _ bytes: [UInt8], with step: Decompress = Decompress(), named name: String = "file"
    ) async throws -> [UInt8] {
      let bench = try Bench()
      let path = try bench.folder.write(bytes, to: "input")
      let memory = ProcessingContext(request: try DownloadRequest("https://example.org/file"), workspace: nil)
      do {
        let output = try await step.process(File(path: path, name: name), in: bench.context())
        let inMemory = try await step.process(File(Artifact(location: .memory(bytes), name: name)), in: memory)
        let result = try output.artifact.readBytes()
        #expect(try inMemory.artifact.readBytes() == result)
        #expect(output.artifact.size == .known(Int64(result.count)))
        #expect(output.name == UnpackedFileName.file(for: name))
        return result
      } catch {
        #expect(try FileManager.default.subpathsOfDirectory(atPath: bench.workspace) == [])
        await #expect(throws: (any Error).self) {
          try await step.process(File(Artifact(location: .memory(bytes), name: name)), in: memory)
        }
        throw error
      }
    }

    func code(_ bytes: [UInt8], with step: Decompress = Decompress()) async -> DownloadError.Code? {
      do {
        _ = try await unpack(bytes, with: step)
        return nil
      } catch {
        return (error as? DownloadError)?.code
      }
    }

    @Test("files of each program, and several in one", arguments: programs)
    func unpacks(_ program: String, _ suffix: String) async throws {
      for content in [Self.content, [1], []] {
        let packed = try Program.compress(program, suffix, content)
        #expect(try await unpack(packed, named: "a.\(suffix)") == content)
        // libarchive stops at an empty frame of lz4, so that what follows it is refused.
        if program == "lz4", content.isEmpty {
          #expect(await code(packed + packed) == .damaged)
        } else {
          #expect(try await unpack(packed + packed) == content + content)
        }
      }
    }

    @Test("a compressed compressed file is decompressed once", arguments: programs)
    func once(_ program: String, _ suffix: String) async throws {
      let packed = try Program.compress(program, suffix, Self.content)
      let twice = try Program.compress(program, suffix, packed)
      #expect(try await unpack(twice) == packed)
    }

    @Test("a truncated file is damaged, and so is one with something behind it", arguments: programs)
    func damaged(_ program: String, _ suffix: String) async throws {
      let packed = try Program.compress(program, suffix, Self.content)
      for count in [0, 1, 3, 7, 12, 100, packed.count / 2, packed.count - 4, packed.count - 1] {
        #expect(await code(Array(packed.prefix(count))) == .damaged, "cut at \(count)")
      }
      for rest in [Array("garbage".utf8), Array("garbage that is longer than any header of a frame".utf8), [0, 0, 1]] {
        #expect(await code(packed + rest) == .damaged, "\(rest)")
      }
      var changed = packed
      changed[packed.count / 4] ^= 1
      // lz4 and zstd have checksums only if their programs write them, as they do by default.
      #expect(await code(changed) == .damaged)
    }

    @Test("limits hold to the byte", arguments: programs)
    func limits(_ program: String, _ suffix: String) async throws {
      let count = Int64(Self.content.count)
      let packed = try Program.compress(program, suffix, Self.content)
      #expect(await code(packed, with: Decompress(maximumOutput: count)) == nil)
      #expect(await code(packed, with: Decompress(maximumOutput: count - 1)) == .tooLarge)
      #expect(Decompress().limit(forInput: 1, inMemory: false).byteCount == 1 << 30)
      #expect(Decompress().limit(forInput: 1, inMemory: true).byteCount == 256 << 20)
      #expect(Decompress(maximumOutput: 5).limit(forInput: 1, inMemory: true).byteCount == 5)
      #expect(Decompress(maximumOutput: nil).limit(forInput: 1 << 30, inMemory: false).byteCount == 256 << 30)
    }

    @Test("other files are refused by what they are")
    func others() async {
      #expect(await code(Array("text".utf8)) == .damaged)
      #expect(await code([]) == .damaged)
      #expect(await code([0x1F, 0x9D, 0x90]) == .processing)
      #expect(await code(Array("LZIP".utf8)) == .processing)
    }

    @Test("zstd with a window beyond the limit says so")
    func window() async throws {
      let folder = try TemporaryFolder()
      try Program.run("truncate", ["-s", "300000000", "zeros"], in: folder.path)
      try Program.run(
        "zstd", ["-q", "--long=31", "--ultra", "-22", "--no-content-size", "zeros", "-o", "out"], in: folder.path)
      #expect(await code(try folder.read("out")) == .processing)
    }

    @Test(
      "names",
      arguments: [
        ("a.xz", "a"), ("a.TXZ", "a.tar"), ("a.tar.zst", "a.tar"), ("a.tbz2", "a.tar"), ("a.lz4", "a"), ("a", "a"),
        (".xz", ".xz"), ("...xz", "...xz"), ("a.svgz", "a.svg"), ("a.zip", "a.zip"),
      ])
    func names(_ name: String, _ expected: String) {
      #expect(UnpackedFileName.file(for: name) == expected)
    }
  }

  @Suite(.endsHangs)
  struct ArchiveConformanceTests {
    @Test("Decompress conforms to the contract of a step")
    func decompress() async throws {
      let content = DownloadFixtures.pattern(size: 100_000)
      let packed = try Program.compress("xz", "xz", content)
      let other = try Program.compress("gzip", "gz", [1, 2, 3])
      try await PostProcessorConformance(
        Decompress(places: FollowerPlaces(4)), .init(packed, named: "a.txt.xz", gives: content, named: "a.txt"),
        and: .init(other, named: "a.tgz", gives: [1, 2, 3], named: "a.tar"),
        bad: .init(Array(packed.dropLast()), named: "cut.xz")
      ).run()
    }

    @Test("Unarchive conforms to the contract of a step")
    func unarchive() async throws {
      func example(_ bytes: [UInt8], _ expected: [String: Found]) -> PostProcessorConformance.Example {
        .init { folder in
          Artifact(
            location: .path(try folder.write(bytes, to: "a.tar")), name: "a.tar", size: .known(Int64(bytes.count)))
        } verify: { output in
          let found = try Bench.tree(output.path ?? "")
          guard output.name == "a", output.kind == .directory, found == expected else {
            throw DownloadError(.processing, "\(output.name): \(found)")
          }
        }
      }
      var zip = ZipBuilder()
      zip.add("z", [7])
      let step = Unarchive(system: .system, places: FollowerPlaces(4))
      try await PostProcessorConformance(
        step, example(OptionTests.archive, OptionTests.all), and: example(zip.archive(), ["z": .file([7])]),
        bad: example(Array(OptionTests.archive.prefix(1000)), [:])
      ).run()
      let packed = try Program.compress("zstd", "zst", OptionTests.archive)
      try await PostProcessorConformance(
        step, example(packed, OptionTests.all),
        and: example(try Program.compress("gzip", "gz", zip.archive()), ["z": .file([7])]),
        bad: example(Array(packed.dropLast()), [:])
      ).run()
    }
  }
#endif
