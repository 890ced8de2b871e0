@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeFiles

/// Workspaces that followers write to while the bytes arrive.
@Suite(.endsHangs)
struct FollowerWorkspaceTests {
  private let bytes = DownloadFixtures.pattern(size: 5 << 20)
  private let url = URL(string: "https://example.org/file.bin")!
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Copies a file, with a follower that copies what arrives.
  private struct Copying: PostProcessor {
    final class Follower: TransferFollower {
      let path: String
      init(in workspace: String) { path = workspace + "/following" }
      func take(_ bytes: RawSpan) throws {
        if !FileManager.default.fileExists(atPath: path) { try Data().write(to: URL(filePath: path)) }
        let handle = try FileHandle(forWritingTo: URL(filePath: path))
        defer { try? handle.close() }
        try handle.seekToEnd()
        try handle.write(contentsOf: bytes.withUnsafeBytes { Data($0) })
      }
      func discard() { try? FileManager.default.removeItem(atPath: path) }
    }

    let followerWrites = true
    let seen = Watched<[Bool]>([])

    func follower(in context: ProcessingContext) -> (any TransferFollower)? { context.workspace.map(Follower.init) }

    func process(_ input: File, in context: ProcessingContext) async throws -> File {
      let follower = context.follower as? Follower
      seen.update { $0.append(follower != nil) }
      guard let workspace = context.workspace, let path = input.path else { throw CancellationError() }
      let output = workspace + "/copy"
      if let follower {
        try FileManager.default.moveItem(atPath: follower.path, toPath: output)
      } else {
        try FileManager.default.copyItem(atPath: path, toPath: output)
      }
      return File(path: output, name: input.name)
    }
  }

  private func work() throws -> [String] {
    let work = folder.path(".downpipe/work")
    return try FileManager.default.fileExists(atPath: work) ? FileManager.default.subpathsOfDirectory(atPath: work) : []
  }

  @Test(arguments: [true, false])
  func aWorkspaceIsInUseWhileBytesArrive(isCancelled: Bool) async throws {
    let source = FakeSource([url: [FakeSource.Script(bytes).holding(after: 3 << 20)]])
    let step = Copying()
    let downloader = try await Downloader {
      source
      FileStore(folder.path)
      step
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    while try !work().contains(where: { $0.hasSuffix("/following") }) { await Task.yield() }
    // Another process, whose ledger does not know the download.
    let other = FileStore(folder.path)
    #expect(try await other.partials()?.map(\.isInUse) == [true])
    let strange = try await MemoryLedger().open()
    #expect(try await other.orphans(unknownTo: strange)?.isEmpty == true)
    if isCancelled {
      try await download.cancel()
    } else {
      source.release()
      let path = try #require(try await download.value.path)
      #expect(FileManager.default.contents(atPath: path) == Data(bytes))
      #expect(step.seen.value == [true])
    }
    await downloader.shutdown()
    #expect(try work().isEmpty)
    #expect(try await other.partials()?.isEmpty == true)
  }
}
