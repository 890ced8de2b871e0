import DownpipeTesting
import Foundation
import HangLimit
import Synchronization
import Testing

@testable import DownpipeCore

/// Another program cuts the partial while it is written.
@Suite(.endsHangs)
struct CutPartialTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 4 << 20)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test("it is noticed when the download stops, and no byte is kept", arguments: [false, true])
  func beforeAStop(isSegmented: Bool) async throws {
    let source = FakeSource([url: [FakeSource.Script(bytes).holding(after: 2 << 20)]])
    var options = options
    options.checkpoints = CheckpointPolicy(bytes: 1 << 20, interval: .seconds(5))
    let downloader = try await Downloader(options: options) {
      source
      if isSegmented { FakeSegmentPolicy(maximum: 2) }
      FakeRetryPolicy(.giveUp)
      storage
      AnyLedger(ledger)
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await source.held(atLeast: 1)
    await storage.calls(of: .synchronize, atLeast: 1)
    storage.damage(PartialKey(id: "a", generation: 1)) { $0.removeLast($0.count - 1000) }
    try await download.pause()
    source.release()
    source.script(url, .init(bytes))
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(try await download.status.resumedFrom == 0)
    await downloader.shutdown()
  }

  @Test("it is noticed before publication, and no such file is published")
  func beforePublication() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let storage = storage
    let isFirst = Atomic(true)
    let step = FakePostProcessor<File, File>(name: "Cut") { file, _ in
      if isFirst.exchange(false, ordering: .relaxed) {
        storage.damage(PartialKey(id: "a", generation: 1)) { $0.removeLast() }
      }
      return file
    }
    let downloader = try await Downloader(options: options) {
      source
      FakeRetryPolicy(.giveUp)
      storage
      AnyLedger(ledger)
      step
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    await #expect { try await download.value } throws: { code($0) == .storage }
    #expect(storage.published.isEmpty)
    try await download.resume()
    #expect(storage.bytes(of: try await download.value) == bytes)
    #expect(source.requests.map(\.range) == [nil, nil])
    await downloader.shutdown()
  }
}
