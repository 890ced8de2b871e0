#if Archive
  import DownpipeCore
  import DownpipeGzip
  import DownpipePOSIX
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Synchronization
  import Testing

  @testable import DownpipeArchive

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// A tar that is made while it is read.
  final class GeneratedTar: BlockSource {
    private let entry: (Int) -> [UInt8]
    private let count: Int
    private(set) var made = 0
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    private var filled = 0

    init(count: Int, entry: @escaping (Int) -> [UInt8]) {
      self.count = count
      self.entry = entry
    }

    deinit { buffer.deallocate() }

    let seekableByteCount: Int64? = nil
    func seek(to offset: Int64) {}

    func head() throws -> UnsafeRawBufferPointer {
      fill()
      return UnsafeRawBufferPointer(rebasing: buffer[..<filled])
    }

    func next() throws -> UnsafeRawBufferPointer {
      fill()
      defer { filled = 0 }
      return UnsafeRawBufferPointer(rebasing: buffer[..<filled])
    }

    private func fill() {
      while filled + 4096 <= buffer.count, made <= count {
        let bytes = made < count ? entry(made) : [UInt8](repeating: 0, count: 1024)
        UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]).copyBytes(from: bytes)
        filled += bytes.count
        made += 1
      }
    }
  }

  @Suite(.endsHangs)
  struct LimitTests {
    typealias Limits = Unarchive.Limits

    @Test("ten million entries end at the limit, long before the last one is read")
    func entries() async throws {
      let bench = try Bench()
      let source = GeneratedTar(count: 10_000_000) { number in
        TarBuilder.header(Array("f\(number)".utf8), type: "0", link: [], mode: 0o644, size: 0, user: 0, time: 0)
      }
      let error = #expect(throws: DownloadError.self) {
        _ = try Unarchive(limits: Limits(entries: 500)).unpack(
          source, ofBytes: 1, beside: nil, named: "out", in: bench.workspace, durability: .process)
      }
      #expect(error?.code == .tooLarge)
      #expect(error?.message.contains("Unarchive.Limits.entries") == true)
      #expect(error?.message.contains("f500") == true)
      #expect(source.made < 2000)
      #expect(try FileManager.default.contentsOfDirectory(atPath: bench.workspace) == [])
    }

    @Test("folders that only paths name count as entries")
    func impliedFolders() async throws {
      var tar = TarBuilder()
      for number in 0..<10 { tar.add((0..<20).map { "\(number)-\($0)" }.joined(separator: "/")) }
      let error = try await Bench().failure(tar.archive, with: Unarchive(limits: Limits(entries: 199)))
      #expect(error?.code == .tooLarge && error?.message.contains("Unarchive.Limits.entries") == true)
      #expect(error?.message.contains("9-19") == true, "\(error?.message ?? "")")
      #expect(try await Bench().unpack(tar.archive, with: Unarchive(limits: Limits(entries: 200))).count == 200)
    }

    @Test("the paths that are kept until the end are bounded", arguments: ["5", "2", "1"])
    func keptPaths(_ type: String) async throws {
      var tar = TarBuilder()
      tar.add("first", type: "2", link: "of all")
      for number in 0..<5 { tar.add("name\(number)", type: Character(type), link: type == "5" ? "" : "first") }
      var step = Unarchive()
      // Of the paths and of the targets.
      step.pathBytes = 11 + (type == "5" ? 25 : type == "2" ? 50 : 55)
      _ = try await Bench().unpack(tar.archive, with: step)
      step.pathBytes -= 1
      let error = try await Bench().failure(tar.archive, with: step)
      #expect(error?.code == .tooLarge && error?.message.contains("Unarchive.Limits.pathBytes") == true)
      #expect(error?.message.contains("name4") == true)
    }

    @Test("links that lead through each other do not take hours")
    func linkChains() async throws {
      var tar = TarBuilder()
      tar.add("x", type: "5")
      let way = String(repeating: "x/../", count: 18)
      for number in 0..<2_000 { tar.add("l\(number)", type: "2", link: "\(way)l\(number + 1)") }
      let error = try await Bench().failure(tar.archive)
      #expect(error?.code == .tooLarge && error?.message.contains("links: .skip") == true)
      // The look-up of a deep place costs more than one step.
      var deep = TarBuilder()
      let down = String(repeating: "x/", count: 1_000)
      for number in 0..<41 { deep.add("l\(number)", type: "2", link: number < 40 ? "l\(number + 1)/\(down)" : down) }
      #expect(try await Bench().failure(deep.archive)?.code == .tooLarge)
      // Many links through few others are usual.
      var usual = TarBuilder()
      usual.add("lib", type: "2", link: "x/y/z/lib64")
      usual.add("x/y/z/lib64/f")
      for number in 0..<3000 { usual.add("bin/p\(number)", type: "2", link: "../lib/f") }
      #expect(try await Bench().unpack(usual.archive).count == 3007)
    }

    @Test("beyond the first bytes, the ratio applies")
    func ratio() async throws {
      let folder = try TemporaryFolder()
      for (size, isAllowed) in [(Limits.freeBytes, true), (Limits.freeBytes + 1, false)] {
        // Holes: no bytes on the disk.
        try Program.run("truncate", ["-s", "\(size)", "hole"], in: folder.path)
        try Program.run("tar", ["--sparse", "-cf", "out", "hole"], in: folder.path)
        let bytes = try folder.read("out")
        let bench = try Bench()
        let input = File(path: try bench.folder.write(bytes, to: "input"), name: "input")
        if isAllowed {
          _ = try await Unarchive().process(input, in: bench.context())
          #expect(try Bench.status(bench.path("hole")).st_size == size)
        } else {
          let error = await #expect(throws: DownloadError.self) {
            try await Unarchive().process(input, in: bench.context())
          }
          #expect(error?.code == .tooLarge && error?.message.contains("Unarchive.Limits.ratio") == true)
          #expect(try FileManager.default.contentsOfDirectory(atPath: bench.workspace) == [])
        }
      }
    }

    @Test("headers that would fill the memory end at a limit")
    func longHeaders() async throws {
      // The map of a sparse file in version 1.0 of GNU: each entry of four bytes becomes 32 bytes of memory.
      let map = "3000000\n" + String(repeating: "0\n0\n", count: 3_000_000)
      var tar = TarBuilder()
      tar.addPax(
        [
          ("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.name", "hole"),
          ("GNU.sparse.realsize", "1"),
        ],
        name: "hole", Array(map.utf8))
      let error = try await Bench().failure(tar.archive)
      #expect(error?.code == .tooLarge && error?.message.contains("header") == true, "\(String(describing: error))")
    }

    @Test("the directory of a zip is counted, also when its end declares fewer entries")
    func miscountedZip() async throws {
      var zip = ZipBuilder()
      for number in 0..<20 { zip.add("f\(number)") }
      let error = try await Bench().failure(zip.archive(declaring: 5), with: Unarchive(limits: Limits(entries: 10)))
      #expect(error?.code == .tooLarge)
      #expect(try await Bench().failure(zip.archive(declaring: 5))?.code == .damaged)
    }

    @Test("the directory of a zip that is checked is the one that libarchive reads")
    func otherDirectories() async throws {
      var zip = ZipBuilder()
      zip.add("a", [1])
      let plain = zip.archive()
      let (body, end) = (plain.dropLast(22), plain.suffix(22))
      let (length, offset) = (Array(end.dropFirst(12).prefix(4)), Array(end.dropFirst(16).prefix(4)))
      func zip64(_ length: [UInt8], _ offset: [UInt8]) -> [UInt8] {
        let one: [UInt8] = [1, 0, 0, 0, 0, 0, 0, 0]
        let none = [UInt8](repeating: 0, count: 4)
        var record: [UInt8] = [0x50, 0x4B, 6, 6, 44, 0, 0, 0, 0, 0, 0, 0, 45, 3, 45, 0]
        for part in [none, none, one, one, length, none, offset, none] { record += part }
        var locator: [UInt8] = [0x50, 0x4B, 6, 7]
        for part in [none, ZipBuilder.number(UInt32(body.count), 4), none, [1, 0, 0, 0]] { locator += part }
        let end: [UInt8] = [0x50, 0x4B, 5, 6, 0, 0, 0, 0] + [UInt8](repeating: 0xFF, count: 12) + [0, 0]
        return [body[...], record[...], locator[...], end[...]].flatMap { $0 }
      }
      #expect(try await Bench().unpack(zip64(length, offset)) == ["a": .file([1])])
      let nothing = [UInt8](repeating: 0, count: 4)
      #expect(try await Bench().failure(zip64(nothing, offset))?.code == .damaged)
      #expect(try await Bench().failure(zip64(length, nothing))?.code == .damaged)
      // libarchive takes the last end, also if too little follows it.
      let decoy: [UInt8] = plain + [0x50, 0x4B, 5, 6] + [UInt8](repeating: 0xFF, count: 20)
      #expect(try await Bench().failure(decoy)?.code == .damaged)
    }

    @Test("a zip with a NUL in a name before its data is refused, also if its directory has none")
    func localName() async throws {
      var zip = ZipBuilder()
      zip.add(Array("axtxt".utf8), [1], localName: Array("a\0txt".utf8))
      #expect(try await Bench().failure(zip.archive())?.code == .unsafePath)
    }

    @Test("entries of a zip that share their bytes are a bomb, too")
    func overlappingZip() async throws {
      var zip = ZipBuilder()
      zip.add("f0", [UInt8](repeating: 7, count: 10_000))
      for number in 1..<500 { zip.addOverlap("f\(number)") }
      let error = try await Bench().failure(zip.archive(), with: Unarchive(limits: Limits(bytes: 1_000_000)))
      #expect(error?.code == .tooLarge || error?.code == .damaged, "\(String(describing: error))")
    }

    @Test("a source that is not a file is unpacked as its blocks come")
    func stream() throws {
      let bench = try Bench()
      let source = GeneratedTar(count: 1000) { number in
        var tar = TarBuilder()
        tar.add("d\(number % 7)/f\(number)", [UInt8(number & 0xFF)])
        return tar.bytes
      }
      let (path, size) = try Unarchive().unpack(
        source, ofBytes: 1, beside: nil, named: "out", in: bench.workspace, durability: .process)
      #expect(size == 1000)
      #expect(try Bench.tree(path).count == 1007)
      #expect(try Bench.tree(path)["d5/f999"] == .file([231]))
    }

    /// What an archive contains, the limit that it exceeds, and the name of that limit.
    struct Exceeded: Sendable, CustomTestStringConvertible {
      let name: String
      let bytes: [UInt8]
      let limits: Limits
      let limit: String
      var testDescription: String { name }

      init(_ name: String, _ bytes: [UInt8], _ limits: Limits, _ limit: String) {
        (self.name, self.bytes, self.limits, self.limit) = (name, bytes, limits, limit)
      }
    }

    static let exceeded: [Exceeded] = {
      func tar(_ build: (inout TarBuilder) -> Void) -> [UInt8] {
        var tar = TarBuilder()
        build(&tar)
        return tar.archive
      }
      var zip = ZipBuilder()
      for number in 0..<4 { zip.add("f\(number)") }
      return [
        Exceeded("entries", tar { for number in 0..<4 { $0.add("f\(number)") } }, Limits(entries: 3), "Limits.entries"),
        Exceeded("entries of a zip", zip.archive(), Limits(entries: 3), "Limits.entries"),
        Exceeded("bytes", tar { $0.add("f", [1, 2, 3, 4]) }, Limits(bytes: 3), "Limits.bytes"),
        Exceeded(
          "bytes of several",
          tar {
            $0.add("f", [1, 2])
            $0.add("g", [1, 2])
          }, Limits(bytes: 3), "Limits.bytes"
        ),
        Exceeded("depth", tar { $0.add("a/b/c/d") }, Limits(depth: 3), "Limits.depth"),
        Exceeded("depth of folders", tar { $0.add("a/b/c/d/", type: "5") }, Limits(depth: 3), "Limits.depth"),
        Exceeded("path", tar { $0.add("a/b/c/d") }, Limits(pathLength: 6), "Limits.pathLength"),
        Exceeded("link", tar { $0.add("a", type: "2", link: "b/c/d/e") }, Limits(pathLength: 6), "Limits.pathLength"),
        Exceeded("name", tar { $0.add("a/abcdef") }, Limits(nameLength: 5), "Limits.nameLength"),
        Exceeded(
          "long name", tar { $0.add(String(repeating: "n", count: 256)) }, Limits(), "Limits.nameLength"
        ),
      ]
    }()

    @Test("each limit has an error that names it", arguments: exceeded)
    func limits(_ test: Exceeded) async throws {
      let (bytes, limits) = (test.bytes, test.limits)
      let error = try await Bench().failure(bytes, with: Unarchive(limits: limits))
      #expect(error?.code == .tooLarge)
      #expect(error?.message.contains("Unarchive." + test.limit) == true, "\(error?.message ?? "")")
      // One more of everything is enough, except that no file system takes a longer name.
      guard test.name != "long name" else { return }
      let more = Limits(
        entries: limits.entries + 1, bytes: limits.bytes.map { $0 + 1 }, depth: limits.depth + 1,
        pathLength: limits.pathLength + 1, nameLength: limits.nameLength + 1)
      _ = try await Bench().unpack(bytes, with: Unarchive(limits: more))
    }

    @Test("no byte over a limit is written", arguments: ["gzip", "xz", "zstd", "bzip2", "zip", "7z"])
    func bomb(_ format: String) async throws {
      let folder = try TemporaryFolder()
      try Program.run("truncate", ["-s", "50000000", "zeros"], in: folder.path)
      switch format {
      case "zip": try Program.run("zip", ["-q", "out", "zeros"], in: folder.path)
      case "7z": try Program.run("7z", ["a", "-bd", "out", "zeros"], in: folder.path)
      default: try Program.run("bsdtar", ["--\(format)", "-cf", "out", "zeros"], in: folder.path)
      }
      let name = try #require(try folder.contents().first { $0.hasPrefix("out") })
      let bytes = try folder.read(name)
      // The sizes of files in the tree, whenever the step makes a call.
      let bench = try Bench()
      let workspace = bench.workspace
      let largest = Mutex<Int64>(0)
      let system = FileSystem { call, _ in
        if call == .write || call == .close {
          let tree = (try? FileManager.default.subpathsOfDirectory(atPath: workspace)) ?? []
          let sizes = tree.compactMap { path -> Int64? in
            guard let status = try? Bench.status(workspace + "/" + path), status.st_mode & S_IFMT == S_IFREG else {
              return nil
            }
            return Int64(status.st_size)
          }
          largest.withLock { $0 = max($0, sizes.reduce(0, +)) }
        }
        return .proceed
      }
      let step = Unarchive(limits: Limits(bytes: 2_000_000), system: system)
      let error = await bench.failure(bytes, with: step)
      #expect(error?.code == .tooLarge)
      #expect(error?.message.contains("zeros") == true)
      let most = largest.withLock { $0 }
      #expect(most <= 2_000_000)
      // The blocks of compressed archives can be longer than half of the limit.
      if format == "zip" || format == "7z" { #expect(most > 1_000_000) }
    }

    @Test("the lowest limit applies")
    func lowest() {
      #expect(Unarchive(limits: Limits()).budget(forInput: 1).byteCount == 1 << 30)
      #expect(Unarchive(limits: Limits(bytes: nil, ratio: 2)).budget(forInput: 1 << 30).byteCount == 2 << 30)
      #expect(Unarchive(limits: Limits()).budget(forInput: 1 << 40).byteCount == 64 << 30)
      #expect(Unarchive(limits: Limits(bytes: nil, ratio: nil)).budget(forInput: 1).byteCount == .max)
      #expect(Unarchive(limits: Limits(bytes: nil)).budget(forInput: .max).byteCount == .max)
    }

    @Test("sparse files count with their holes")
    func sparse() async throws {
      let folder = try TemporaryFolder()
      try Program.run("truncate", ["-s", "5000000", "hole"], in: folder.path)
      try Program.run("tar", ["--sparse", "-cf", "out", "hole"], in: folder.path)
      let bytes = try folder.read("out")
      #expect(bytes.count < 20_000)
      #expect(try await Bench().failure(bytes, with: Unarchive(limits: Limits(bytes: 4_999_999)))?.code == .tooLarge)
      _ = try await Bench().unpack(bytes, with: Unarchive(limits: Limits(bytes: 5_000_000)))
    }

    @Test("compressed again and again is a bomb")
    func layers() async throws {
      var bytes = TarBuilder().archive
      for _ in 0..<3 { bytes = try Program.compress("gzip", "gz", bytes) }
      #expect(try await Bench().unpack(bytes) == [:])
      bytes = try Program.compress("gzip", "gz", bytes)
      #expect(try await Bench().failure(bytes)?.code == .tooLarge)
    }

    @Test("sizes that lie decide nothing")
    func lyingSizes() async throws {
      var tar = TarBuilder()
      tar.add("a", [1], size: 0o7777_7777_777)
      #expect(try await Bench().failure(tar.archive)?.code == .damaged)
      for (size, flags) in [(1, 0x800), (4_000_000_000, 0x800), (1, 0x808)] as [(Int, UInt32)] {
        var zip = ZipBuilder()
        zip.add("a", [1, 2, 3], flags: flags, size: size)
        #expect(try await Bench().failure(zip.archive())?.code == .damaged, "\(size)")
      }
    }

    @Test("the disk has no room")
    func noSpace() async throws {
      var tar = TarBuilder()
      tar.add("a", [1])
      for call in [FileSystem.Call.write, .makeFolder, .open] {
        let bench = try Bench()
        let calls = Atomic(0)
        let system = FileSystem { made, path in
          guard made == call, call == .write || path == "a" || path.hasSuffix(".unpacking") else { return .proceed }
          return calls.add(1, ordering: .relaxed).newValue >= 1 ? .fail(ENOSPC) : .proceed
        }
        #expect(await bench.failure(tar.archive, with: Unarchive(system: system))?.code == .noSpace, "\(call)")
      }
    }
  }
#endif
