import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The steps after the transfer.
@Suite(.endsHangs)
struct DownloaderStepTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  @Test func aStepWithNothingToDoIsSkipped() async throws {
    let downloader = try await Downloader(options: options) {
      FakeSource([url: [.init(bytes)]])
      storage
      ledger
      NeverNeeded()
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(!storage.calls.contains { $0.operation == .workspace })
    await downloader.shutdown()
  }

  @Test func aStepThatFailsIsTriedAgainWithoutFetchingAgain() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let attempts = CallCounter()
    let step = FakePostProcessor<File, File>(name: "Flaky") { file, _ in
      if attempts.next() == 1 { throw DownloadError(.processing, "flaky") }
      return file
    }
    let downloader = try await Downloader(options: options) {
      source
      storage
      ledger
      FakeRetryPolicy(.resume(after: .zero))
      step
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == bytes)
    #expect(source.requests.count == 1)
    #expect(step.inputs.count == 2)
    await downloader.shutdown()
  }

  @Test func stepsRunInOrderAndTheirInputsGo() async throws {
    let source = FakeSource([url: [.init(bytes)]])
    let reversed = Array(bytes.reversed())
    let downloader = try await Downloader(options: options) {
      source
      storage
      ledger
      FakePostProcessor<File, File>.bytes(name: "Reverse") { $0.reversed() }
      FakePostProcessor<File, File>.bytes(name: "Append") { $0 + [42] }
    }
    let artifact = try await downloader.add(DownloadRequest(url, id: "a")).value
    #expect(storage.bytes(of: artifact) == reversed + [42])
    #expect(storage.partials.isEmpty)
    await downloader.shutdown()
  }
}
