import DownpipeCore
import DownpipeFiles
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Transports that hand over a finished file, which the storage moves.
@Suite(.endsHangs)
struct FinishedFileTests {
  @Test func aMovedFileCountsAsFetched() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let source = try FinishedFile(DownloadFixtures.pattern(size: 5000), in: folder)
    let observer = RecordingObserver()
    let downloader = try await Downloader {
      source
      FileStore(folder.url.appending(path: "store").path(percentEncoded: false))
      observer
    }
    let download = try await downloader.add(DownloadRequest("https://example.org/file", id: "a"))
    _ = try await download.value
    #expect(try await download.status.bytesFetched == 5000)
    #expect(!source.exists, "the file was copied")
    await downloader.shutdown()
    let fetched = observer.events(of: "a").compactMap {
      if case .progress(let progress) = $0 { progress.fetched } else { nil }
    }
    #expect(fetched.contains(5000))
  }

  @Test("A finished file needs no room on the disk: it is there already, and is moved")
  func noRoomNeeded() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let source = try FinishedFile(DownloadFixtures.pattern(size: 2 << 20), in: folder)
    let downloader = try await Downloader {
      source
      FakeRetryPolicy(.giveUp)
      FullDisk()
      FileStore(folder.url.appending(path: "store").path(percentEncoded: false))
    }
    let download = try await downloader.add(DownloadRequest("https://example.org/file", id: "a"))
    _ = try await download.value
    #expect(source.discards.value == 0 && !source.exists)
    await downloader.shutdown()
  }

  @Test(
    "A finished file is kept while it cannot be stored, and is taken afterwards",
    arguments: [DownloadError.Code.noSpace, .permission, .inUse])
  func keptAfterLocalFailures(_ code: DownloadError.Code) async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let bytes = DownloadFixtures.pattern(size: 5000)
    let source = try FinishedFile(bytes, in: folder)
    let storage = FakeStorage()
    storage.fail(.write, with: DownloadError(code, "not now"))
    let downloader = try await Downloader {
      source
      FakeRetryPolicy { $0.error.code == code ? .resume(after: .zero) : .giveUp }
      storage
    }
    let download = try await downloader.add(DownloadRequest("https://example.org/file", id: "a"))
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.openings.value == 2 && source.discards.value == 0)
    await downloader.shutdown()
  }

  @Test("A finished file is kept when its download is stopped before it was read, unless the download is cancelled")
  func stopped() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let bytes = DownloadFixtures.pattern(size: 5000)
    let source = try FinishedFile(bytes, in: folder, holdsFirst: true)
    let storage = FakeStorage()
    let downloader = try await Downloader {
      source
      FakeRetryPolicy(.giveUp)
      storage
    }
    let download = try await downloader.add(DownloadRequest("https://example.org/file", id: "a"))
    await source.reads.wait { $0 == 1 }
    try await downloader.pause("a")
    #expect(source.exists && source.discards.value == 0)
    try await downloader.resume("a")
    #expect(storage.bytes(of: try await download.value) == bytes)
    await downloader.shutdown()

    let other = try FinishedFile(bytes, in: folder, holdsFirst: true)
    let next = try await Downloader {
      other
      FakeStorage()
    }
    try await next.add(DownloadRequest("https://example.org/file", id: "a"))
    await other.reads.wait { $0 == 1 }
    try await next.cancel("a")
    #expect(!other.exists)
    await next.shutdown()
  }

  @Test("A finished file that is not the wanted one, or whose rest would be requested next, is discarded")
  func discarded() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    for isOther in [true, false] {
      let source = try FinishedFile(DownloadFixtures.pattern(size: 5000), in: folder, chunkSize: 1000)
      let storage = FakeStorage()
      if !isOther { storage.fail(.write, at: 2, with: DownloadError(.noSpace, "full")) }
      let downloader = try await Downloader {
        source
        FakeRetryPolicy(.giveUp)
        storage
      }
      var request = try DownloadRequest("https://example.org/file", id: "a")
      if isOther { request.expectedSize = 4000 }
      let download = try await downloader.add(request)
      await #expect(throws: DownloadError.self) { try await download.value }
      #expect(source.discards.value > 0 && !source.exists)
      await downloader.shutdown()
    }
  }
}

/// A transport with a finished file, which it deletes when it is told to discard it.
private struct FinishedFile: Source, SourceSession {
  let path: String
  let bytes: [UInt8]
  let chunkSize: Int
  /// Whether the first reading of the file waits until it is cancelled.
  let holdsFirst: Bool
  let openings = Watched(0)
  let reads = Watched(0)
  let discards = Watched(0)

  init(_ bytes: [UInt8], in folder: TemporaryFolder, chunkSize: Int = .max, holdsFirst: Bool = false) throws {
    self.bytes = bytes
    self.chunkSize = chunkSize
    self.holdsFirst = holdsFirst
    path = try folder.write(bytes, to: "of the transport")
  }

  var exists: Bool { FileManager.default.fileExists(atPath: path) }

  func accepts(_ url: URL) -> Bool { true }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    openings.update { $0 += 1 }
    guard exists else { throw DownloadError(.network, "the file has been deleted") }
    let discard: @Sendable () -> Void = { [path, discards] in
      discards.update { $0 += 1 }
      try? FileManager.default.removeItem(atPath: path)
    }
    return SourceReply(
      coverage: .whole, length: .known(Int64(bytes.count)),
      body: Body(file: path, discard: discard) { [bytes, chunkSize, holdsFirst, reads] sink in
        let count = reads.update {
          $0 += 1
          return $0
        }
        if holdsFirst, count == 1 {
          await reads.wait { $0 > 1 }
          try Task.checkCancellation()
        }
        for start in stride(from: 0, to: bytes.count, by: min(chunkSize, bytes.count)) {
          try sink(Array(bytes[start..<min(start + min(chunkSize, bytes.count), bytes.count)]).span.bytes)
        }
      })
  }
}

/// A gate that leaves no room for any download.
private struct FullDisk: Gate {
  func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws { publish(.open) }
  func room(for candidate: Candidate) async throws -> Int64? { 0 }
}
