import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeFiles

/// Companions of downloads, from the step that makes them to the removal of the file.
@Suite(.endsHangs)
struct CompanionDownloadTests {
  private static let bytes = Array("picture".utf8)

  /// The files outside of the store's own folder.
  private func published(_ folder: TemporaryFolder) throws -> [String: [UInt8]] {
    try folder.tree().filter { !$0.key.contains(".downpipe") }
  }

  @Test("A companion goes with its download's file through renaming, a restart, another fetch and removal")
  func aLife() async throws {
    let folder = try TemporaryFolder()
    let url = try #require(URL(string: "https://example.org/picture.jpg"))
    let source = FakeSource([url: [FakeSource.Script(Self.bytes), FakeSource.Script(Self.bytes + [1])]])
    let ledger = MemoryLedger()
    func downloader(_ suffix: String) async throws -> Downloader {
      try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
        source
        FileStore(folder.path("store"))
        ledger
        FakePostProcessor<File, File>(name: "Thumbnail") { file, context in
          let path = (context.workspace ?? "") + "/thumbnail"
          try Data([7]).write(to: URL(filePath: path))
          return file.withCompanion(at: path, suffix: suffix)
        }
      }
    }
    let first = try await downloader(".t.png")
    let artifact = try await first.add(DownloadRequest(url, id: "a")).value
    #expect(artifact.companions.map(\.path) == [folder.path("store/picture.jpg.t.png")])
    #expect(try published(folder) == ["store/picture.jpg": Self.bytes, "store/picture.jpg.t.png": [7]])
    let renamed = try await first.rename("a", to: "other.jpg")
    #expect(renamed.artifact?.companions.map(\.path) == [folder.path("store/other.jpg.t.png")])
    #expect(try published(folder) == ["store/other.jpg": Self.bytes, "store/other.jpg.t.png": [7]])
    await first.shutdown()
    let second = try await downloader(".small.png")
    let download = try #require(try await second.download("a"))
    #expect(try await download.status.artifact == renamed.artifact)
    #expect(try await download.refresh())
    let refreshed = try await download.value
    #expect(refreshed.companions.map(\.path) == [folder.path("store/other.jpg.small.png")])
    #expect(try published(folder) == ["store/other.jpg": Self.bytes + [1], "store/other.jpg.small.png": [7]])
    try await second.removeAll(ids: ["a"], deletingFiles: true)
    #expect(try published(folder) == [:])
    await second.shutdown()
  }

  @Test("A step that returns another file drops the companions, and they go with the workspace")
  func droppedCompanions() async throws {
    let folder = try TemporaryFolder()
    let url = try #require(URL(string: "https://example.org/picture.jpg"))
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      FakeSource([url: [FakeSource.Script(Self.bytes)]])
      FileStore(folder.path("store"))
      FakePostProcessor<File, File>(name: "Thumbnail") { file, context in
        let path = (context.workspace ?? "") + "/thumbnail"
        try Data([7]).write(to: URL(filePath: path))
        return file.withCompanion(at: path, suffix: ".t.png")
      }
      Then { artifact, _ in #expect(artifact.companions.count == 1) }
      FakePostProcessor<File, File>(name: "Other") { file, context in
        let path = (context.workspace ?? "") + "/other"
        try Data(Self.bytes.reversed()).write(to: URL(filePath: path))
        return File(path: path, name: file.name)
      }
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(artifact.companions.isEmpty)
    #expect(try published(folder) == ["store/picture.jpg": Self.bytes.reversed()])
    await downloader.shutdown()
  }

  @Test("A companion that is lost between two runs is made again")
  func aLostCompanion() async throws {
    let folder = try TemporaryFolder()
    let url = try #require(URL(string: "https://example.org/picture.jpg"))
    let source = FakeSource([url: [FakeSource.Script(Self.bytes)]])
    let thumbnail = FakePostProcessor<File, File>(name: "Thumbnail") { file, context in
      let path = (context.workspace ?? "") + "/thumbnail"
      try Data([7]).write(to: URL(filePath: path))
      return file.withCompanion(at: path, suffix: ".t.png")
    }
    let isFailing = Atomic(true)
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      FakeRetryPolicy(.giveUp)
      FileStore(folder.path("store"))
      thumbnail
      FakePostProcessor<File, File>(name: "Check") { file, _ in
        if isFailing.load(ordering: .relaxed) { throw DownloadError(.processing, "stop here") }
        return file
      }
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect(throws: DownloadError.self) { try await download.value }
    let lost = try #require(try folder.tree().keys.first { $0.hasSuffix("/thumbnail") })
    try FileManager.default.removeItem(atPath: folder.path(lost))
    isFailing.store(false, ordering: .relaxed)
    try await download.resume()
    let artifact = try await download.value
    #expect(artifact.companions.map(\.path) == [folder.path("store/picture.jpg.t.png")])
    #expect(try published(folder) == ["store/picture.jpg": Self.bytes, "store/picture.jpg.t.png": [7]])
    #expect(thumbnail.inputs.count == 2 && source.requests.count == 1)
    await downloader.shutdown()
  }
}
