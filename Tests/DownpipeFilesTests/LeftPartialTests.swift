import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeFiles

/// The ledger has given up the bytes of a partial, and the next attempt ends without a checkpoint: its file has no
/// name, and does not replace the partial.
@Suite(.endsHangs)
struct LeftPartialTests {
  private let folder: TemporaryFolder
  private let url = URL(string: "https://example.org/file.bin")!
  private let bytes = DownloadFixtures.pattern(size: 100_000)

  init() throws { folder = try TemporaryFolder() }

  private func downloader(
    _ source: FakeSource, _ policy: ConflictPolicy = .keepBoth, startsSuspended: Bool = false
  ) async throws -> Downloader {
    let path = folder.path
    return try await Downloader(
      options: DownloaderOptions(time: VirtualTime(), startsSuspended: startsSuspended)
    ) {
      source
      FakeRetryPolicy(.giveUp)
      FileStore(path, onConflict: policy)
      MemoryLedger()
    }
  }

  /// A paused download with bytes on disk.
  /// - Parameter later: The file that the server has afterwards.
  private func paused(_ later: [UInt8], _ policy: ConflictPolicy = .keepBoth) async throws -> (Downloader, Download) {
    let source = FakeSource([url: [FakeSource.Script(bytes).holding(after: 60_000), .init(later)]])
    let downloader = try await downloader(source, policy)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    #expect(try await download.pause())
    #expect(isLeft)
    return (downloader, download)
  }

  private var isLeft: Bool { FileManager.default.fileExists(atPath: folder.path(".downpipe/partials/a.1.part")) }

  private func expectNothingLeft(by downloader: Downloader) async throws {
    #expect(!isLeft)
    #expect(try await downloader.orphans().isEmpty)
    await downloader.shutdown()
  }

  @Test("a restart leaves none of the earlier bytes")
  func restarted() async throws {
    let (downloader, download) = try await paused(bytes)
    try await download.restart()
    #expect(try await download.value.readBytes() == bytes)
    try await expectNothingLeft(by: downloader)
  }

  @Test("nor do an empty file and a file of another size", arguments: [0, 50_000])
  func ofAnotherSize(_ size: Int) async throws {
    let other = DownloadFixtures.pattern(size: size, seed: 2)
    let (downloader, download) = try await paused(other)
    try await download.update { $0.expectedSize = .known(Int64(size)) }
    try await download.resume()
    #expect(try await download.value.readBytes() == other)
    try await expectNothingLeft(by: downloader)
  }

  @Test("nor does a file that is there already, and makes the transfer unnecessary")
  func reused() async throws {
    let (downloader, download) = try await paused(bytes, .reuse)
    try folder.write(bytes, to: "file.bin")
    try await download.restart()
    #expect(try await download.value.isReused)
    try await expectNothingLeft(by: downloader)
  }

  @Test("nor do bytes that a process has stored, but not recorded before its end")
  func unrecorded() async throws {
    let downloader = try await downloader(FakeSource(everyURL: .init(bytes)), startsSuspended: true)
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    _ = try await FileStore(folder.path).staged(someBytes, key("a"))
    #expect(isLeft)
    await downloader.setSuspended(false)
    #expect(try await download.value.readBytes() == bytes)
    try await expectNothingLeft(by: downloader)
  }

  @Test(
    "a finished partial without a name says whether there are other bytes under its key",
    .enabled(if: Ground.hasUnnamedFiles, "needs files without a name"), arguments: [false, true])
  func saysWhatIsStored(hasOthers: Bool) async throws {
    let store = FileStore(folder.path)
    if hasOthers { _ = try await store.staged([1, 2, 3]) }
    let partial = try await store.openPartial(key(), isNew: true)
    try partial.put([7], at: 0)
    try partial.finish()
    #expect(partial.isNamed == hasOthers)
    try partial.close()
  }
}
