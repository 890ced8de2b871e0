import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeFiles

/// Files of this machine that are refreshed from other files of this machine.
@Suite(.endsHangs)
struct RefreshedFileTests {
  private func downloader(
    _ folder: TemporaryFolder, _ ledger: MemoryLedger, _ conflict: ConflictPolicy = .replace, isMoved: Bool = false
  ) async throws -> (Downloader, FakeInterceptor) {
    let requests = FakeInterceptor()
    let films = folder.path("films")
    let downloader = try await Downloader {
      FileSource()
      requests
      FileStore(folder.path("store"), onConflict: conflict)
      ledger
      if isMoved { MoveInto(films) }
    }
    return (downloader, requests)
  }

  private func request(_ path: String) -> DownloadRequest {
    DownloadRequest(URL(filePath: path), id: "a", destination: .init(name: "copy")).with(\.refresh, .ifChanged)
  }

  @Test("only a changed file is copied again, also to a place outside of the store", arguments: [false, true])
  func changes(isMoved: Bool) async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(Array("first".utf8), to: "original")
    let copy = isMoved ? "films/copy" : "store/copy"
    let (downloader, requests) = try await downloader(folder, MemoryLedger(), isMoved: isMoved)
    _ = try await downloader.add(request(path)).value
    let status = try FileManager.default.attributesOfItem(atPath: folder.path(copy))
    _ = try await downloader.add(request(path)).value
    #expect(try folder.read(copy) == Array("first".utf8))
    let after = try FileManager.default.attributesOfItem(atPath: folder.path(copy))
    #expect(after[.systemFileNumber] as? Int == status[.systemFileNumber] as? Int, "it is the same file")
    try folder.write(Array("second".utf8), to: "original")
    _ = try await downloader.add(request(path)).value
    #expect(try folder.read(copy) == Array("second".utf8))
    #expect(requests.requests.map { $0.condition != nil } == [false, true, true])
    await downloader.shutdown()
    folder.close()
  }

  @Test("a copy that another program has changed is not taken for the file, and is kept if nothing may be replaced")
  func changedByOthers() async throws {
    for (conflict, names) in [(ConflictPolicy.replace, ["copy"]), (.keepBoth, ["copy", "copy (1)"])] {
      let folder = try TemporaryFolder()
      let path = try folder.write(Array("first".utf8), to: "original")
      let (downloader, requests) = try await downloader(folder, MemoryLedger(), conflict)
      _ = try await downloader.add(request(path)).value
      try folder.write(Array("mine, and longer".utf8), to: "store/copy")
      let artifact = try await downloader.add(request(path)).value
      #expect(requests.requests.map(\.condition) == [nil, nil])
      #expect(artifact.name == names.last)
      #expect(try folder.read("store/\(artifact.name)") == Array("first".utf8))
      let found = try FileManager.default.contentsOfDirectory(atPath: folder.path("store"))
      #expect(found.filter { $0 != ".downpipe" }.sorted() == names)
      await downloader.shutdown()
      folder.close()
    }
  }

  @Test(
    "a file that was there before the download is not deleted with it", arguments: ["remove", "removeAll", "discard"])
  func removingReused(_ command: String) async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(Array("first".utf8), to: "original")
    try folder.write(Array("first".utf8), to: "store/copy")
    let (downloader, _) = try await downloader(folder, MemoryLedger(), .reuse)
    let download = try await downloader.add(request(path))
    _ = try await download.value
    #expect(try await download.value.isReused)
    switch command {
    case "remove": #expect(try await download.remove(deletingFile: true))
    case "removeAll": #expect(try await downloader.removeAll(deletingFiles: true) == 1)
    default: #expect(try await download.discard())
    }
    #expect(try folder.read("store/copy") == Array("first".utf8))
    await downloader.shutdown()
    folder.close()
  }

  @Test("a file that was there before the download stays as it is when the server has another one")
  func reused() async throws {
    let folder = try TemporaryFolder()
    let path = try folder.write(Array("first".utf8), to: "original")
    try folder.write(Array("first".utf8), to: "store/copy")
    let (downloader, requests) = try await downloader(folder, MemoryLedger(), .reuse)
    #expect(try await downloader.add(request(path)).value.isReused)
    #expect(requests.requests.isEmpty)
    // Nothing is known of the server's file, so it is fetched and compared.
    #expect(try await downloader.add(request(path)).value.isReused)
    #expect(requests.requests.count == 1)
    _ = try await downloader.add(request(path)).value
    #expect(requests.requests.count == 2 && requests.requests.last?.condition != nil)
    try folder.write(Array("second".utf8), to: "original")
    #expect(try await downloader.add(request(path)).value.name == "copy (1)")
    #expect(try folder.read("store/copy") == Array("first".utf8))
    #expect(try folder.read("store/copy (1)") == Array("second".utf8))
    await downloader.shutdown()
    folder.close()
  }
}
