#if Archive
  import DownpipeCore
  import DownpipePOSIX
  import DownpipeTesting
  import Foundation
  import HangLimit
  import Testing

  @testable import DownpipeArchive

  /// Passes on a step, and notes whether it got its follower.
  struct Spy<Base: PostProcessor>: PostProcessor {
    let base: Base
    var follows = true
    let seen = Watched<[Bool]>([])

    init(_ base: Base, follows: Bool = true) {
      self.base = base
      self.follows = follows
    }

    var name: String { base.name }
    var followerWrites: Bool { base.followerWrites }
    func follower(in context: ProcessingContext) -> (any TransferFollower)? {
      follows ? base.follower(in: context) : nil
    }
    func process(_ input: Base.Input, in context: ProcessingContext) async throws -> Base.Output {
      seen.update { $0.append(context.follower != nil) }
      return try await base.process(input, in: context)
    }
  }

  /// Archives and compressed files that are unpacked while they arrive.
  @Suite(.endsHangs)
  struct ArchiveFollowingTests {
    private static let files = (0..<30).map { number in
      ("folder \(number % 3)/file \(number)", DownloadFixtures.pattern(size: 100_000 + number, seed: UInt64(number)))
    }
    private static let tar: [UInt8] = {
      var tar = TarBuilder()
      for (name, bytes) in files { tar.add(name, bytes) }
      tar.add("link", type: "2", link: "folder 0/file 0")
      return tar.archive
    }()
    private static let zip: [UInt8] = {
      var zip = ZipBuilder()
      for (name, bytes) in files { zip.add(name, bytes) }
      return zip.archive()
    }()
    /// What is published, without the link, which ``FakeStorage`` publishes as the file that it leads to.
    private static let published = Dictionary(uniqueKeysWithValues: files.map { ("a/" + $0.0, $0.1) })

    private let url = URL(string: "https://example.org/a.tar")!
    private let folder: TemporaryFolder
    private let storage: FakeStorage
    private let places = FollowerPlaces(4)

    init() throws {
      folder = try TemporaryFolder()
      storage = FakeStorage(workspaces: folder.path)
    }

    private func unarchive(_ limits: Unarchive.Limits = .init()) -> Unarchive {
      Unarchive(limits: limits, system: .system, places: places)
    }

    /// The files and links in all workspaces.
    private var written: [String] {
      (FileManager.default.subpaths(atPath: folder.path) ?? []).filter { path in
        (try? FileManager.default.attributesOfItem(atPath: folder.path(path))[.type] as? FileAttributeType)
          != .typeDirectory
      }
    }

    /// Downloads a file, and returns what was published, or the error; nothing may be left.
    private func fetch(
      _ file: [UInt8], _ step: some PostProcessor, announcing: Bool = true
    ) async throws -> Result<[String: [UInt8]], DownloadError> {
      let storage = FakeStorage(workspaces: folder.path)
      let source = FakeSource([url: [FakeSource.Script(file).with { $0.announcesLength = announcing }]])
      let downloader = try await Downloader {
        source
        storage
        FakeRetryPolicy(.giveUp)
        AnyStep(base: step)
      }
      let download = try await downloader.add(DownloadRequest(url))
      var failure: DownloadError?
      do { _ = try await download.value } catch let error as DownloadError { failure = error }
      await downloader.shutdown()
      #expect(written.isEmpty)
      if let failure { #expect(storage.published.isEmpty, "\(failure)") }
      return failure.map { .failure($0) } ?? .success(storage.published.filter { $0.key != "a/link" })
    }

    private struct AnyStep: UniversalPostProcessor {
      let base: any Stage
      func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact { artifact }
      func contribute(to parts: inout PipelineParts) { base.contribute(to: &parts) }
    }

    /// A download of an archive that is held in the middle of its bytes, after files of it have been unpacked.
    private func held(
      _ packed: [UInt8]
    ) async throws -> (source: FakeSource, spy: Spy<Unarchive>, downloader: Downloader, download: Download) {
      let source = FakeSource([url: [FakeSource.Script(packed).holding(after: 2_500_000)]])
      let spy = Spy(unarchive())
      let downloader = try await Downloader {
        source
        storage
        AnyStep(base: spy)
      }
      let download = try await downloader.add(DownloadRequest(url))
      await source.held(atLeast: 1)
      while written.count < 10 { await Task.yield() }
      return (source, spy, downloader, download)
    }

    @Test("the files appear while bytes arrive", arguments: [nil, ("zstd", "zst"), ("gzip", "gz"), ("xz", "xz")])
    func filesAppear(_ program: (String, String)?) async throws {
      let packed = try program.map { try Program.compress($0.0, $0.1, Self.tar) } ?? Self.tar
      let (source, spy, downloader, download) = try await held(packed)
      #expect(storage.published.isEmpty)
      source.release()
      _ = try await download.value
      #expect(storage.published.filter { $0.key != "a/link" } == Self.published)
      #expect(spy.seen.value == [true])
      await downloader.shutdown()
      #expect(written.isEmpty)
      #expect(storage.calls.allSatisfy { $0.operation != .read })
    }

    @Test("the ratio applies to the bytes that have arrived, not to those that were announced")
    func ratioOfArrivedBytes() async throws {
      let files = try TemporaryFolder()
      // A hole: no bytes on the disk. The whole archive may become 2 GiB.
      try Program.run("truncate", ["-s", "\(Unarchive.Limits.freeBytes + 1)", "hole"], in: files.path)
      try files.write(DownloadFixtures.pattern(size: 8 << 20), to: "rest")
      try Program.run("tar", ["--sparse", "-cf", "a.tar", "hole", "rest"], in: files.path)
      let bytes = try files.read("a.tar")
      let step = unarchive()
      let context = ProcessingContext(
        request: DownloadRequest(url), workspace: folder.path, bytesReceived: Int64(bytes.count))
      let follower = try #require(step.follower(in: context))
      #expect(throws: FedBlocks.AheadOfRatio.self) {
        for start in stride(from: 0, to: bytes.count, by: 100_000) {
          try follower.take(bytes[start..<min(bytes.count, start + 100_000)].span.bytes)
        }
      }
      follower.discard()
      #expect(written.isEmpty)
      let file = File(path: files.path("a.tar"), name: "a.tar")
      #expect(
        try await step.process(file, in: context).artifact.size == .known(Unarchive.Limits.freeBytes + 1 + 8 << 20))
    }

    @Test("every compression gives the same, with and without a length", arguments: DecompressTests.programs)
    func compressions(_ program: String, _ suffix: String) async throws {
      let packed = try Program.compress(program, suffix, Self.tar)
      for announcing in [true, false] {
        let (archive, file) = (Spy(unarchive()), Spy(Decompress(places: places)))
        #expect(try await fetch(packed, archive, announcing: announcing) == .success(Self.published))
        #expect(try await fetch(packed, file, announcing: announcing) == .success(["a.tar": Self.tar]))
        #expect(archive.seen.value == [true] && file.seen.value == [true])
      }
    }

    @Test func aZipIsUnpackedWhenItIsComplete() async throws {
      let spy = Spy(unarchive())
      #expect(try await fetch(Self.zip, spy) == .success(Self.published))
      #expect(spy.seen.value == [false])
      // A compressed one has no directory that could be read first.
      let packed = Spy(unarchive())
      let file = try Program.compress("gzip", "gz", Self.zip)
      #expect(try await fetch(file, packed) == fetch(file, Spy(unarchive(), follows: false)))
      #expect(packed.seen.value == [true])
    }

    @Test("a file that may be read in two ways is not followed")
    func twoFormats() throws {
      var old = Self.tar
      // A tar of the first kind has no mark, and so could be anything in front of a zip.
      old.replaceSubrange(257..<265, with: [UInt8](repeating: 0, count: 8))
      for file in [old, Self.zip, Array("070707".utf8) + Self.tar] {
        let bench = try Bench()
        let context = ProcessingContext(
          request: try DownloadRequest("https://example.org/a"), workspace: bench.workspace, bytesReceived: 1 << 30)
        let follower = try #require(unarchive().follower(in: context))
        #expect(throws: (any Error).self) {
          // The reader is on another thread.
          while true { try follower.take(file.span.bytes) }
        }
        follower.discard()
        #expect(try FileManager.default.subpathsOfDirectory(atPath: bench.workspace) == [])
      }
    }

    struct Damage: Sendable, CustomTestStringConvertible {
      let testDescription: String
      var limits = Unarchive.Limits()
      let file: @Sendable () throws -> [UInt8]
    }

    private static let damages = [
      Damage(testDescription: "a byte in the middle of a zstd file") {
        var file = try Program.compress("zstd", "zst", tar)
        file[file.count / 2] ^= 1
        return file
      },
      Damage(testDescription: "the checksum at the end of a gzip file") {
        var file = try Program.compress("gzip", "gz", tar)
        file[file.count - 6] ^= 1
        return file
      },
      Damage(testDescription: "a truncated tar") { Array(tar.prefix(2_900_000)) },
      Damage(testDescription: "a truncated xz file") { try Program.compress("xz", "xz", tar).dropLast(100) },
      Damage(testDescription: "another file") { DownloadFixtures.pattern(size: 3 << 20, seed: 99) },
      Damage(testDescription: "too many bytes", limits: .init(bytes: 1_500_000)) { tar },
      Damage(testDescription: "too many entries", limits: .init(entries: 20)) {
        try Program.compress("zstd", "zst", tar)
      },
      Damage(testDescription: "a path that leads out") {
        var builder = TarBuilder()
        for (name, bytes) in files { builder.add(name, bytes) }
        builder.add("../out", [1])
        return builder.archive
      },
      Damage(testDescription: "a bomb", limits: .init(bytes: 20_000_000)) {
        var builder = TarBuilder()
        builder.add("noise", DownloadFixtures.pattern(size: 3 << 20, seed: 5))
        for number in 0..<8 { builder.add("zeros \(number)", [UInt8](repeating: 0, count: 8_000_000)) }
        return try Program.compress("zstd", "zst", builder.archive)
      },
    ]

    @Test("a bad archive has the same error with and without a follower, and leaves nothing", arguments: damages)
    func errors(_ damage: Damage) async throws {
      let file = try damage.file()
      let step = unarchive(damage.limits)
      let results = (try await fetch(file, Spy(step)), try await fetch(file, Spy(step, follows: false)))
      guard case (.failure(let error), .failure(let expected)) = results else {
        Issue.record("\(results)")
        return
      }
      #expect(error.code == expected.code)
      #expect(error.message == expected.message)
    }

    @Test("a bad file has the same error with and without a follower", arguments: DecompressTests.programs)
    func badFiles(_ program: String, _ suffix: String) async throws {
      let packed = try Program.compress(program, suffix, Self.tar)
      var damaged = packed
      damaged[packed.count / 2] ^= 0x55
      let limited = Decompress(maximumOutput: 2_000_000, places: places)
      for (file, step) in [
        (Array(packed.dropLast(10)), Decompress(places: places)), (damaged, Decompress(places: places)),
        (packed + [1, 2, 3], Decompress(places: places)), (packed, limited),
      ] {
        let results = (try await fetch(file, Spy(step)), try await fetch(file, Spy(step, follows: false)))
        #expect(results.0 == results.1)
      }
    }

    // MARK: Ends

    @Test("a reader that waits for bytes, or writes, ends when it is discarded", arguments: [0, 1000, 2_000_000])
    func discarding(after count: Int) throws {
      let bench = try Bench()
      let context = ProcessingContext(
        request: try DownloadRequest("https://example.org/a"), workspace: bench.workspace, bytesReceived: 1 << 30)
      let place = FollowerPlaces(1)
      let step = Unarchive(system: .system, places: place)
      let follower = try #require(step.follower(in: context))
      #expect(step.follower(in: context) == nil, "there is one place")
      if count > 0 { try follower.take(Array(Self.tar.prefix(count)).span.bytes) }
      follower.discard()
      #expect(try FileManager.default.subpathsOfDirectory(atPath: bench.workspace) == [])
      #expect(step.follower(in: context) != nil)
    }

    @Test func aDownloadWithoutAPlaceIsUnpackedAfterwards() async throws {
      let none = FollowerPlaces(0)
      let spy = Spy(Unarchive(system: .system, places: none))
      #expect(try await fetch(Self.tar, spy) == .success(Self.published))
      #expect(spy.seen.value == [false])
    }

    @Test func aDownloadThatIsCancelledLeavesNothing() async throws {
      let (_, spy, downloader, download) = try await held(try Program.compress("zstd", "zst", Self.tar))
      try await download.cancel()
      #expect(written.isEmpty)
      #expect(spy.seen.value.isEmpty)
      await downloader.shutdown()
    }

    // MARK: Blocks

    @Test(
      "a reader gets the blocks of a file, however the bytes arrive", arguments: [1, 100, 4096, 300_000, 2_000_000])
    func blocks(chunk: Int) throws {
      let size = chunk == 1 ? 3000 : 1_000_000
      let bytes = DownloadFixtures.pattern(size: size)
      let file = ArtifactBlocks(try ArtifactBytes(Artifact(location: .memory(bytes), name: "a")))
      var expected: [[UInt8]] = [Array(try file.head())]
      while let block = try Optional(file.next()), !block.isEmpty { expected.append(Array(block)) }

      let feed = BlockFeed()
      // A thread of its own: this one waits.
      try SystemThread.start("push") {
        for start in stride(from: 0, to: bytes.count, by: chunk) {
          _ = feed.put(bytes.span.bytes.extracting(start..<min(start + chunk, bytes.count)))
        }
        feed.complete()
      }
      let fed = FedBlocks(feed)
      var found: [[UInt8]] = [Array(try fed.head())]
      while let block = try Optional(fed.next()), !block.isEmpty { found.append(Array(block)) }
      #expect(found == expected)
      #expect(try fed.next().isEmpty)
    }

    @Test("neither side of a feed waits for one that has ended")
    func anEndedFeed() {
      let feed = BlockFeed()
      let bytes: [UInt8] = [1]
      let first = feed.put(bytes.span.bytes)
      feed.end()
      let second = feed.put(bytes.span.bytes)
      #expect(first && !second)
      feed.complete()
      #expect(throws: CancellationError.self) { try FedBlocks(feed).next() }
      #expect(throws: CancellationError.self) { try FedBlocks(feed).head() }
    }
  }
#endif
