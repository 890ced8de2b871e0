import DownpipeCore
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeGzip

/// Files that are decompressed while they arrive.
@Suite(.endsHangs)
struct GunzipFollowerTests {
  private static let part = DownloadFixtures.pattern(size: 60_000)
  private static let member = GzipSamples.member(part)
  private static let count = 50
  /// Some members, because computing a checksum bit by bit takes long; 3 MB.
  private static let whole = [UInt8]((0..<count).map { _ in member }.joined())
  private static let content = [UInt8]((0..<count).map { _ in part }.joined())

  private let url = URL(string: "https://example.org/song.txt.gz")!
  private let folder: TemporaryFolder
  private let storage: FakeStorage

  init() throws {
    folder = try TemporaryFolder()
    storage = FakeStorage(workspaces: folder.path)
  }

  /// Passes on a step, and notes whether it got its follower.
  private struct Spy: PostProcessor {
    let base: Gunzip
    var follows = true
    let seen = Watched<[Bool]>([])
    var name: String { base.name }
    var followerWrites: Bool { base.followerWrites }
    func follower(in context: ProcessingContext) -> (any TransferFollower)? {
      follows ? base.follower(in: context) : nil
    }
    func process(_ input: File, in context: ProcessingContext) async throws -> File {
      seen.update { $0.append(context.follower != nil) }
      return try await base.process(input, in: context)
    }
  }

  /// The files in all workspaces.
  private var written: [String] {
    (FileManager.default.subpaths(atPath: folder.path) ?? []).filter { path in
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: folder.path(path), isDirectory: &isFolder) && !isFolder.boolValue
    }
  }

  /// Downloads a file, and returns the published bytes, or the error; nothing may be left.
  private func fetch(_ file: [UInt8], _ steps: Spy..., announcing: Bool = true) async throws -> Result<
    [UInt8], DownloadError
  > {
    let source = FakeSource([url: [FakeSource.Script(file).with { $0.announcesLength = announcing }]])
    let downloader = try await Downloader {
      source
      storage
      FakeRetryPolicy(.giveUp)
      for step in steps { step }
    }
    let download = try await downloader.add(DownloadRequest(url))
    let result: Result<[UInt8], DownloadError>
    do {
      result = .success(try #require(storage.bytes(of: try await download.value)))
    } catch let error as DownloadError {
      result = .failure(error)
      #expect(storage.published.isEmpty)
    }
    await downloader.shutdown()
    #expect(written.isEmpty)
    return result
  }

  @Test func theOutputGrowsWhileBytesArrive() async throws {
    let source = FakeSource([url: [FakeSource.Script(Self.whole).holding(after: 2_500_000)]])
    let spy = Spy(base: Gunzip())
    let downloader = try await Downloader {
      source
      storage
      spy
    }
    let download = try await downloader.add(DownloadRequest(url))
    await source.held(atLeast: 1)
    var found: [UInt8] = []
    while found.count < 1 << 20 {
      await Task.yield()
      let path = written.first.map(folder.path) ?? ""
      found = FileManager.default.contents(atPath: path).map { [UInt8]($0) } ?? []
    }
    #expect(Self.content.starts(with: found))
    #expect(storage.published.isEmpty)
    source.release()
    let artifact = try await download.value
    #expect(storage.bytes(of: artifact) == Self.content)
    #expect(artifact.name == "song.txt")
    #expect(spy.seen.value == [true])
    await downloader.shutdown()
    #expect(written.isEmpty)
    #expect(storage.calls.allSatisfy { $0.operation != .read })
  }

  @Test("a file is the same with and without a length", arguments: [true, false])
  func lengths(announcing: Bool) async throws {
    let spy = Spy(base: Gunzip())
    #expect(try await fetch(Self.whole, spy, announcing: announcing) == .success(Self.content))
    #expect(spy.seen.value == [true])
  }

  struct Damage: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var isFollowed = false
    var step = Gunzip()
    let file: @Sendable () -> [UInt8]
  }

  private static let damages = [
    Damage(testDescription: "a byte in the middle") {
      var file = whole
      file[file.count / 2] ^= 1
      return file
    },
    Damage(testDescription: "a byte at the end") {
      var file = whole
      file[file.count - 1] ^= 1
      return file
    },
    Damage(testDescription: "truncated", isFollowed: true) { Array(whole.dropLast(9)) },
    Damage(testDescription: "other bytes behind it") { whole + [1, 2, 3] },
    Damage(testDescription: "another file") { DownloadFixtures.pattern(size: 3 << 20, seed: 8) },
    Damage(testDescription: "too much output", step: Gunzip(maximumOutput: 1_000_000)) { whole },
    Damage(testDescription: "a bomb", step: Gunzip(maximumOutput: 1_000_000)) {
      [UInt8]((0..<6).map { _ in GunzipLimitTests.bomb }.joined())
    },
  ]

  @Test("a bad file has the same error with and without a follower, and leaves nothing", arguments: damages)
  func errors(_ damage: Damage) async throws {
    let file = damage.file()
    let (followed, plain) = (Spy(base: damage.step), Spy(base: damage.step, follows: false))
    let results = (try await fetch(file, followed), try await fetch(file, plain))
    guard case (.failure(let error), .failure(let expected)) = results else {
      Issue.record("\(results)")
      return
    }
    #expect(error.code == expected.code)
    #expect(error.message == expected.message)
    if damage.isFollowed { #expect(followed.seen.value == [true]) }
  }

  @Test func theLimitHoldsOnTheDiskWhileBytesArrive() throws {
    let workspace = folder.path("work")
    try FileManager.default.createDirectory(atPath: workspace, withIntermediateDirectories: false)
    let gunzip = Gunzip(maximumOutput: 3_000_000)
    let context = ProcessingContext(
      request: try DownloadRequest("https://example.org/a.gz"), workspace: workspace, bytesReceived: 1 << 40)
    let follower = try #require(gunzip.follower(in: context))
    let error = #expect(throws: DownloadError.self) {
      var rest = GunzipLimitTests.bomb[...]
      while !rest.isEmpty {
        try follower.take(Array(rest.prefix(10_000)).span.bytes)
        rest = rest.dropFirst(10_000)
      }
    }
    #expect(error?.code == .tooLarge)
    let path = workspace + "/gunzip/.unpacking"
    let size = try #require(FileManager.default.contents(atPath: path)).count
    #expect(size <= 3_000_000 && size > 1_000_000)
    follower.discard()
    #expect(try FileManager.default.subpathsOfDirectory(atPath: workspace) == [])
  }

  @Test func otherFilesStayAsTheyAre() async throws {
    let bytes = DownloadFixtures.pattern(size: 3 << 20)
    let spy = Spy(base: Gunzip(otherFiles: .keep))
    let source = FakeSource([url: [FakeSource.Script(bytes).with { $0.suggestedName = "song.txt" }]])
    let downloader = try await Downloader {
      source
      storage
      spy
    }
    #expect(storage.bytes(of: try await downloader.add(DownloadRequest(url)).value) == bytes)
    #expect(spy.seen.value == [false])
    await downloader.shutdown()
    #expect(written.isEmpty)
  }

  @Test func aFileThatWasCompressedTwice() async throws {
    // Stored blocks, whose checksum is that of the inner file.
    let inner = Self.whole
    let (first, second) = (Spy(base: Gunzip()), Spy(base: Gunzip()))
    #expect(try await fetch(GzipSamples.member(inner), first, second) == .success(Self.content))
    #expect(first.seen.value == [true] && second.seen.value == [false])
  }

  @Test("an unpacked file keeps the name of its header, and a step without a workspace has no follower")
  func namesAndMemory() async throws {
    let named = GzipSamples.member(Self.part, name: Array("inner.txt".utf8))
    let file = named + Self.whole
    let spy = Spy(base: Gunzip(naming: .header))
    #expect(try await fetch(file, spy) == .success(Self.part + Self.content))
    #expect(storage.published.keys.sorted() == ["inner.txt"])
    let context = ProcessingContext(request: try DownloadRequest("https://example.org/a.gz"), workspace: nil)
    #expect(Gunzip().follower(in: context) == nil)
  }

  @Test func placesAreFreeAgain() {
    let places = FollowerPlaces(2)
    var taken = [places.take(), places.take()]
    #expect(taken.allSatisfy { $0 != nil })
    #expect(places.take() == nil)
    taken.removeLast()
    #expect(places.take() != nil, "and free again at once")
    taken = []
    let both = [places.take(), places.take()]
    #expect(both.allSatisfy { $0 != nil })
  }
}
