import DownpipeCore
import DownpipeFiles
import DownpipePOSIX
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeChecksum

/// Digests of pieces in a file beside the file.
@Suite(.endsHangs)
struct WritePieceDigestsTests {
  private static let bytes = DownloadFixtures.pattern(size: 1_050)
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func artifact(_ bytes: [UInt8] = Self.bytes, named name: String = "film") throws -> File {
    File(path: try folder.write(bytes, to: "input"), name: name)
  }

  private func context(follower: (any TransferFollower)? = nil) throws -> ProcessingContext {
    ProcessingContext(
      request: try DownloadRequest("https://example.org/film"), workspace: nil, follower: follower,
      bytesReceived: Int64(Self.bytes.count))
  }

  private func written(_ name: String) throws -> PieceDigests {
    try JSONDecoder().decode(PieceDigests.self, from: Data(folder.read(name)))
  }

  private func expected(_ algorithm: DigestAlgorithm = .sha256, length: Int64?) async throws -> PieceDigests {
    try await withFile(Self.bytes) { try await PieceDigests.of(file: $0, algorithm: algorithm, length: length) }
  }

  @Test("they are those of the file, computed while bytes arrive or read")
  func values() async throws {
    for (algorithm, length) in [(.sha256, 100), (.sha512, 1_050), (.md5, nil)] as [(DigestAlgorithm, Int64?)] {
      let step = try WritePieceDigests(algorithm, length: length, into: folder.path)
      let input = try artifact()
      for follows in [false, true] {
        let follower = follows ? try #require(step.follower(in: context())) : nil
        try follower?.take(Self.bytes.span.bytes)
        if follows {
          // It is not read: other bytes would give other digests.
          _ = try folder.write([UInt8](repeating: 0, count: Self.bytes.count), to: "input")
        }
        #expect(try await step.process(input, in: context(follower: follower)).artifact == input.artifact)
        #expect(try await written("film.pieces") == expected(algorithm, length: length))
        _ = try folder.write(Self.bytes, to: "input")
      }
      #expect(try folder.contents().sorted() == ["film.pieces", "input"])
    }
  }

  @Test("an earlier version is replaced, and any other file stays")
  func existing() async throws {
    let step = try WritePieceDigests(length: 100, into: folder.path)
    let input = try artifact()
    _ = try folder.write(Array("{\"algorithm\":\"sha-256\",\"length\":1,\"digests\":\"\"}".utf8), to: "film.pieces")
    await #expect { try await step.process(input, in: context()) } throws: {
      ($0 as? DownloadError)?.code == .alreadyExists
    }
    let mine = Array("my own pieces".utf8)
    _ = try folder.write(mine, to: "film.pieces")
    await #expect { try await step.process(input, in: context()) } throws: {
      ($0 as? DownloadError)?.code == .alreadyExists
    }
    #expect(try folder.read("film.pieces") == mine)
    try FileManager.default.removeItem(atPath: folder.path("film.pieces"))
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("film.pieces"), withDestinationPath: folder.path("elsewhere"))
    await #expect { try await step.process(input, in: context()) } throws: {
      ($0 as? DownloadError)?.code == .alreadyExists
    }
    try FileManager.default.removeItem(atPath: folder.path("film.pieces"))

    let other = try PieceDigests(.sha256, length: 7, bytes: [UInt8](repeating: 1, count: 32))
    _ = try folder.write([UInt8](JSONEncoder().encode(#require(other))), to: "film.pieces")
    _ = try await step.process(input, in: context())
    #expect(try await written("film.pieces") == expected(length: 100))
    // An empty file has no pieces, so those of the file before it would be wrong.
    _ = try await step.process(artifact([]), in: context())
    #expect(try folder.contents() == ["input"])
  }

  @Test("without a folder it stands after MoveInto")
  func beforeAFolder() async throws {
    let step = try WritePieceDigests()
    await #expect { try await step.process(artifact(), in: context()) } throws: {
      ($0 as? DownloadError)?.code == .invalidPipeline
    }
    #expect(try folder.contents() == ["input"])
  }

  @Test func wrongSettingsAreRefused() {
    func code(_ make: () throws(DownloadError) -> WritePieceDigests) -> DownloadError.Code? {
      do {
        _ = try make()
        return nil
      } catch {
        return error.code
      }
    }
    #expect(code { () throws(DownloadError) in try WritePieceDigests(.init("none")) } == .invalidPipeline)
    #expect(code { () throws(DownloadError) in try WritePieceDigests(length: 0) } == .invalidPipeline)
    #expect(code { () throws(DownloadError) in try WritePieceDigests(length: 65 << 20) } == .invalidPipeline)
    #expect(code { () throws(DownloadError) in try WritePieceDigests(suffix: "") } == .invalidPipeline)
    #expect(code { () throws(DownloadError) in try WritePieceDigests(suffix: "/x") } == .invalidPipeline)
  }

  @Test("a failure leaves the earlier digests and no other file", arguments: [FileSystem.Call.open, .write, .rename])
  func failures(_ failing: FileSystem.Call) async throws {
    let input = try artifact()
    _ = try await WritePieceDigests(length: 50, into: folder.path).process(input, in: context())
    let system = FileSystem { call, path in
      call == failing && (call != .open || path.hasPrefix(".")) ? .fail(ENOSPC) : .proceed
    }
    let step = try WritePieceDigests(.sha256, length: 100, into: folder.path, suffix: ".pieces", system: system)
    await #expect { try await step.process(input, in: context()) } throws: {
      ($0 as? DownloadError)?.code == .noSpace
    }
    #expect(try await written("film.pieces") == expected(length: 50))
    #expect(try folder.contents().sorted() == ["film.pieces", "input"])
  }

  @Test func keepsTheContract() async throws {
    let step = try WritePieceDigests(length: 100, into: folder.path)
    try await PostProcessorConformance(step, .init(Self.bytes, named: "a"), and: .init([1, 2, 3], named: "b")).run()
  }

  @Test("a damaged file is repaired with what the step has written")
  func repair() async throws {
    let size = 3 << 20
    let content = DownloadFixtures.pattern(size: size)
    let store = folder.path("store")
    let films = folder.path("films")
    var first = try DownloadRequest("https://example.org/film", id: "film", destination: .init(name: "film"))
    func downloader(_ source: FakeSource) async throws -> Downloader {
      try await Downloader {
        source
        FileStore(store)
        MemoryLedger()
        VerifyChecksum()
        MoveInto(films)
        try WritePieceDigests(length: 1 << 16)
      }
    }
    let source = FakeSource(everyURL: .init(content))
    let one = try await downloader(source)
    _ = try await one.add(first).value
    await one.shutdown()
    first.pieces = try written("films/film.pieces")
    #expect(first.pieces?.count == size >> 16)

    try FileManager.default.removeItem(atPath: folder.path("films/film"))
    let two = try await downloader(source)
    let download = try await two.add(first)
    _ = try await download.value
    var damaged = content
    damaged[100_000] ^= 1
    _ = try folder.write(damaged, to: "films/film")
    let before = source.requests.count
    guard case .damaged = try await two.verify("film", repairing: true) else {
      Issue.record("the damage was not found")
      return
    }
    _ = try await two.download("film")?.value
    #expect(try folder.read("films/film") == content)
    #expect(source.requests[before...].map(\.range?.start) == [65_536])
    await two.shutdown()
  }
}
