#if Archive
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeArchive
  @testable import DownpipePOSIX

  @Suite(.endsHangs)
  struct DamageTests {
    @Test("what is no archive is refused")
    func noArchive() async throws {
      for bytes in [[], [0x1F], Array("<html>404</html>".utf8), DownloadFixtures.pattern(size: 100_000)] {
        #expect(try await Bench().failure(bytes)?.code == .damaged)
      }
      #expect(try await Bench().failure(Program.compress("gzip", "gz", Array("text".utf8)))?.code == .damaged)
      let rar = try await Bench().failure(Array("Rar!\u{1A}\u{7}\0".utf8))
      #expect(rar?.code == .processing && rar?.message.contains("RAR") == true)
      let method = try await Bench().failure(
        {
          var zip = ZipBuilder()
          zip.add(Array("a".utf8), [1, 2, 3], method: 9)
          return zip.archive()
        }())
      #expect(method?.code == .processing && method?.message.contains("“a”") == true)
    }

    @Test(
      "a truncated archive is damaged, wherever it ends",
      arguments: ["tar", "gzip", "xz", "zstd", "bzip2", "lz4", "zip", "7z"])
    func truncated(_ format: String) async throws {
      let folder = try TemporaryFolder()
      _ = try folder.write(DownloadFixtures.pattern(size: 3000), to: "a")
      _ = try folder.write(DownloadFixtures.pattern(size: 70_000, seed: 3), to: "b")
      switch format {
      case "zip": try Program.run("zip", ["-q", "out", "a", "b"], in: folder.path)
      case "7z": try Program.run("7z", ["a", "-bd", "out", "a", "b"], in: folder.path)
      case "tar": try Program.run("bsdtar", ["-cf", "out", "a", "b"], in: folder.path)
      default: try Program.run("bsdtar", ["--\(format)", "-cf", "out", "a", "b"], in: folder.path)
      }
      let name = try #require(try folder.contents().first { $0.hasPrefix("out") })
      let bytes = try folder.read(name)
      _ = try await Bench().unpack(bytes)
      // A tar without its end of zeros is complete for every program.
      let end = format == "tar" ? 512 * 2 + 3072 + 70_144 - 600 : bytes.count - 1
      for count in [1, 5, 20, 600, 3000, 50_000, end] where count <= end {
        let error = try await Bench().failure(Array(bytes.prefix(count)))
        #expect(error?.code == .damaged, "cut at \(count): \(error?.message ?? "")")
      }
    }

    @Test("a changed byte behind a checksum is found", arguments: ["gzip", "xz", "zstd", "bzip2", "lz4", "zip", "7z"])
    func changed(_ format: String) async throws {
      let folder = try TemporaryFolder()
      // Noise is stored as it is by every format: a change in the middle decodes without an error.
      _ = try folder.write(DownloadFixtures.pattern(size: 70_000, seed: 3), to: "a")
      switch format {
      case "zip": try Program.run("zip", ["-q", "out", "a"], in: folder.path)
      case "7z": try Program.run("7z", ["a", "-bd", "-m0=Copy", "out", "a"], in: folder.path)
      case "zstd":
        try Program.run("bsdtar", ["-cf", "tar", "a"], in: folder.path)
        try Program.run("zstd", ["-q", "--check", "tar", "-o", "out"], in: folder.path)
      case "lz4":
        try Program.run("bsdtar", ["-cf", "tar", "a"], in: folder.path)
        try Program.run("lz4", ["-q", "tar", "out"], in: folder.path)
      default: try Program.run("bsdtar", ["--\(format)", "-cf", "out", "a"], in: folder.path)
      }
      let name = try #require(try folder.contents().first { $0.hasPrefix("out") })
      var bytes = try folder.read(name)
      bytes[bytes.count / 2] ^= 0x10
      #expect(try await Bench().failure(bytes)?.code == .damaged)
    }

    @Test("every single changed bit of a tar and a zip leaves all or nothing")
    func flippedBits() async throws {
      var tar = TarBuilder()
      tar.add("d/a", [1, 2, 3])
      tar.add("l", type: "2", link: "d/a")
      var zip = ZipBuilder()
      zip.add("d/a", [1, 2, 3])
      zip.add("b", [4])
      let folder = try TemporaryFolder()
      let workspace = folder.path("w")
      try FileManager.default.createDirectory(atPath: workspace, withIntermediateDirectories: false)
      for archive in [tar.archive, zip.archive()] {
        for bit in stride(from: 0, to: 8 * min(archive.count, 1700), by: 3) {
          var bytes = archive
          bytes[bit / 8] ^= 1 << (bit % 8)
          let source = ArtifactBlocks(try ArtifactBytes(Artifact(location: .memory(bytes), name: "a")))
          do {
            let (path, _) = try Unarchive().unpack(
              source, ofBytes: 1, beside: nil, named: "out", in: workspace, durability: .process)
            try FileManager.default.removeItem(atPath: (path as NSString).deletingLastPathComponent)
          } catch is DownloadError {}
          #expect(try FileManager.default.contentsOfDirectory(atPath: workspace) == [], "bit \(bit)")
          #expect(try folder.contents() == ["w"], "bit \(bit)")
        }
      }
    }

    @Test("a directory that declares other entries than there are is damaged")
    func entryCount() async throws {
      var zip = ZipBuilder()
      zip.add("a", [1])
      for count in [0, 2, 60_000] {
        #expect(try await Bench().failure(zip.archive(declaring: count))?.code == .damaged, "\(count)")
      }
      #expect(try await Bench().unpack(zip.archive(declaring: 1)) == ["a": .file([1])])
    }

    @Test("names that are not UTF-8 are read as what they mostly are")
    func otherNames() async throws {
      var zip = ZipBuilder()
      zip.add([0x81, 0x9A, 0xE1], [1], flags: 0)
      zip.add([0xC3, 0xA9], [2], flags: 0)
      #expect(try await Bench().unpack(zip.archive()) == ["üÜß": .file([1]), "é": .file([2])])
      var tar = TarBuilder()
      tar.add([0xFC, 0xDF], [1])
      tar.add(Array("l".utf8), type: "2", link: [0xFC, 0xDF])
      #expect(try await Bench().unpack(tar.archive) == ["üß": .file([1]), "l": .link("üß")])
    }

    @Test("cancelling stops at the next block, and leaves nothing")
    func cancelled() async throws {
      let bench = try Bench()
      let count = 400
      let made = Atomic(0)
      let task = Task {
        let source = GeneratedTar(count: count) { number in
          made.add(1, ordering: .relaxed)
          if number == 200 { withUnsafeCurrentTask { $0?.cancel() } }
          var tar = TarBuilder()
          tar.add("f\(number)", [UInt8](repeating: 1, count: 2000))
          return tar.bytes
        }
        _ = try Unarchive().unpack(
          source, ofBytes: 1, beside: nil, named: "out", in: bench.workspace, durability: .process)
      }
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(made.load(ordering: .relaxed) < 250)
      #expect(try FileManager.default.contentsOfDirectory(atPath: bench.workspace) == [])
    }

    @Test("a second run replaces the folder of the first one; an input from the same folder stays")
    func again() async throws {
      let bench = try Bench()
      var tar = TarBuilder()
      tar.add("a.tar", OptionTests.archive)
      let first = try await Unarchive().process(
        File(path: bench.folder.write(tar.archive, to: "input"), name: "x.tar"), in: bench.context())
      let root = try #require(first.path)
      let inner = File(path: root + "/a.tar", name: "a.tar")
      for _ in 0..<2 {
        let second = try await Unarchive().process(inner, in: bench.context())
        #expect(try Bench.tree(try #require(second.path)) == OptionTests.all)
      }
      #expect(try Bench.tree(root) == ["a.tar": .file(OptionTests.archive)])
    }

    @Test("a storage without files gets a clear error")
    func memory() async throws {
      let input = File(Artifact(location: .memory(OptionTests.archive), name: "a.tar"))
      let context = ProcessingContext(request: try DownloadRequest("https://example.org/a.tar"), workspace: nil)
      let error = await #expect(throws: DownloadError.self) { try await Unarchive().process(input, in: context) }
      #expect(error?.code == .processing && error?.message.contains("FileStore") == true)
    }
  }
#endif
