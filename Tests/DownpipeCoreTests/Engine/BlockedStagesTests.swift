@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Dispatch
import Foundation
import HangLimit
import Testing

/// Stages that block their threads: everything else goes on, and a shutdown leaves them behind.
@Suite(.endsHangs)
struct BlockedStagesTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 10_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// Blocks threads until it is opened.
  private final class Door: Sendable {
    let waiting = Watched(0)
    private let semaphore = DispatchSemaphore(value: 0)
    func pass() {
      waiting.update { $0 += 1 }
      semaphore.wait()
      semaphore.signal()
    }
    func open() { semaphore.signal() }
  }

  private struct Blocking: UniversalPostProcessor {
    let door: Door
    func isNeeded(in context: ProcessingContext) -> Bool { context.request.tags.contains("blocked") }
    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      door.pass()
      return artifact
    }
  }

  private struct BlockingObserver: Observer {
    let door: Door
    func observe(_ events: AsyncStream<DownloadEvent>) async { for await _ in events { door.pass() } }
  }

  /// A storage that blocks when it opens a partial.
  private struct BlockingStorage: StorageWrapper {
    let base: any Storage
    let door: Door
    var mayBlock: Bool { true }
    func openPartial(_ key: PartialKey, isNew: Bool) async throws -> any Partial {
      if key.id.rawValue.hasPrefix("blocked") { door.pass() }
      return try await base.openPartial(key, isNew: isNew)
    }
  }

  private func blocked(_ count: Int) -> [DownloadRequest] {
    (0..<count).map { DownloadRequest(url, id: DownloadID("blocked \($0)"), tags: ["blocked"]) }
  }

  private var count: Int { ProcessInfo.processInfo.activeProcessorCount * 3 + 2 }

  @Test("more blocked steps than cores hold up nothing else")
  func blockedSteps() async throws {
    let door = Door()
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      storage
      AnyLedger(ledger)
      Blocking(door: door)
      FakeAdmissionPolicy()
    }
    let held = try await downloader.add(contentsOf: blocked(count))
    await door.waiting.wait { $0 == count }
    // All tasks of this process run on as many threads as there are cores.
    _ = try await downloader.add(url).value
    #expect(try await downloader.counts(.all)[.finished] == 1)
    door.open()
    for download in held { _ = try await download.value }
    await downloader.shutdown()
  }

  @Test("more blocked calls of a storage than cores hold up nothing else")
  func blockedStorage() async throws {
    let door = Door()
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      BlockingStorage(base: storage, door: door)
      AnyLedger(ledger)
      FakeAdmissionPolicy()
    }
    let held = try await downloader.add(contentsOf: blocked(count))
    await door.waiting.wait { $0 == count }
    _ = try await downloader.add(url).value
    door.open()
    for download in held { _ = try await download.value }
    await downloader.shutdown()
  }

  @Test("blocked observers hold up nothing, not even the shutdown, which names them")
  func blockedObservers() async throws {
    let door = Door()
    let count = count
    let downloader = try await Downloader(options: options) {
      FakeSource(everyURL: .init(bytes))
      storage
      AnyLedger(ledger)
      for _ in 0..<count { BlockingObserver(door: door) }
    }
    for request in blocked(20) { _ = try await downloader.add(request).value }
    await door.waiting.wait { $0 >= count }
    async let report = downloader.shutdown(waitingAtMost: .seconds(7))
    await time.sleeper(dueIn: .seconds(7))
    time.advance(by: .seconds(7))
    #expect(await report.unended.map(\.stage) == Array(repeating: "BlockingObserver", count: count))
    door.open()
    #expect(await downloader.shutdown(waitingAtMost: nil).isComplete)
  }

  @Test("a blocked step outlives a shutdown; its download keeps its lease and its partial until it returns")
  func blockedStepAtShutdown() async throws {
    let door = Door()
    let observer = RecordingObserver()
    func start() async throws -> Downloader {
      try await Downloader(options: options) {
        FakeSource(everyURL: .init(bytes))
        storage
        AnyLedger(ledger)
        observer
        Blocking(door: door)
      }
    }
    let downloader = try await start()
    let download = try await downloader.add(blocked(1)[0])
    await door.waiting.wait { $0 == 1 }
    async let stopping = downloader.shutdown()
    await time.sleeper(dueIn: .seconds(10))
    time.advance(by: .seconds(10))
    let report = await stopping
    #expect(report.unended == [ShutdownReport.Unended(stage: "Blocking", download: download.id)])
    #expect("\(report)" == "left behind because it does not return: Blocking (download blocked 0)")
    #expect(storage.openPartials == 1)
    await #expect(throws: DownloadError.self) { try await download.status }
    // Another downloader cannot start it, for as long as a lease lasts and longer.
    let other = try await start()
    for _ in 0..<10 {
      time.advance(by: .seconds(15))
      try await settle(other)
    }
    #expect(door.waiting.value == 1)
    door.open()
    #expect(await downloader.shutdown(waitingAtMost: nil).isComplete)
    try await advancing { _ = try await other.download(download.id)?.value }
    #expect(storage.published.count == 1)
    await other.shutdown(waitingAtMost: nil)
  }
}
