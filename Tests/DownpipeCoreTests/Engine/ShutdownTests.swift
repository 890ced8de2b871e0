@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Shutting down while runs are in different phases of their work.
@Suite(.endsHangs)
struct ShutdownTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 100_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  enum Stage: String, CaseIterable {
    case partial, opening, body, step, publishing

    var received: Int64 { self == .partial || self == .opening ? 0 : self == .body ? 40_000 : 100_000 }
  }

  /// A pipeline whose downloads are held at the point that their id names.
  private struct Held {
    let source: FakeSource
    let probe: ProbeStorage
    let isAnswered = Watched(false)
    let stepMayEnd = Watched(false)
    let interceptor: FakeInterceptor
    let step: FakePostProcessor<File, File>

    init(_ bytes: [UInt8], url: URL, storage: FakeStorage) {
      let (isAnswered, stepMayEnd) = (isAnswered, stepMayEnd)
      probe = ProbeStorage(storage)
      var scripts: [URL: [FakeSource.Script]] = [:]
      for stage in Stage.allCases {
        let script = FakeSource.Script(bytes)
        scripts[url.appending(path: stage.rawValue)] = [stage == .body ? script.holding(after: 40_000) : script]
      }
      source = FakeSource(scripts)
      interceptor = FakeInterceptor { request, next in
        if request.id == "opening" { await isAnswered.wait { $0 } }
        return try await next(request)
      }
      step = FakePostProcessor(name: "Slow") { file, context in
        if context.request.id == "step" {
          await stepMayEnd.wait { $0 }
          try Task.checkCancellation()
        }
        return file
      }
    }

    func release() {
      source.release()
      probe.release()
      isAnswered.update { $0 = true }
      stepMayEnd.update { $0 = true }
    }
  }

  private func downloader(_ held: Held) async throws -> Downloader {
    try await Downloader(options: options) {
      held.source
      held.interceptor
      held.probe
      FakeRetryPolicy(.giveUp)
      limit(10)
      ledger
      held.step
    }
  }

  private func request(_ stage: Stage) -> DownloadRequest {
    DownloadRequest(url.appending(path: stage.rawValue), id: DownloadID(stage.rawValue))
  }

  private func begin(_ stage: Stage, _ held: Held, _ downloader: Downloader) async throws {
    if stage == .partial { held.probe.hold(.openPartial) }
    if stage == .publishing { held.probe.hold(.publish) }
    try await downloader.add(request(stage))
    switch stage {
    case .partial: await held.probe.held(.openPartial)
    case .opening:
      while !held.interceptor.requests.contains(where: { $0.id == "opening" }) { await Task.yield() }
    case .body: await held.source.held(atLeast: 1)
    case .step:
      while held.step.inputs.isEmpty { await Task.yield() }
    case .publishing: await held.probe.held(.publish)
    }
  }

  private func checkAfterwards(_ stages: [Stage], _ held: Held) async throws {
    #expect(storage.openPartials == 0)
    #expect(held.source.readers == 0 && held.source.stops == 1)
    #expect(storage.published.isEmpty)
    let store = try await ledger.open()
    for stage in stages {
      let record = try #require(try await store.record(DownloadID(stage.rawValue)))
      #expect(record.phase == .waiting && record.owner == nil, "\(stage)")
      #expect(record.checkpoint.ranges.prefixLength == stage.received, "\(stage)")
      #expect(record.error == nil, "\(stage): a shutdown is not a failure")
      #expect(storage.partials[record.partialKey].map { Int64($0.count) } ?? 0 == stage.received, "\(stage)")
    }
    try await store.close()
    // The next downloader continues with the bytes on disk.
    let asked = held.source.requests.count
    held.release()
    let second = try await downloader(held)
    try await second.waitUntilIdle()
    #expect(try await second.counts() == [.finished: stages.count])
    let repeated = held.source.requests.dropFirst(asked).map(\.id.rawValue)
    #expect(Set(repeated) == Set(stages.filter { $0.received < 100_000 }.map(\.rawValue)))
    await second.shutdown()
    #expect(storage.partials.isEmpty && storage.openPartials == 0)
    for stage in stages { #expect(storage.published[stage.rawValue] == bytes) }
  }

  @Test(arguments: Stage.allCases)
  func inOneStage(stage: Stage) async throws {
    let held = Held(bytes, url: url, storage: storage)
    let downloader = try await downloader(held)
    try await begin(stage, held, downloader)
    await downloader.shutdown()
    try await checkAfterwards([stage], held)
  }

  @Test func inAllStagesAtOnce() async throws {
    let held = Held(bytes, url: url, storage: storage)
    let downloader = try await downloader(held)
    for stage in [Stage.opening, .body, .step, .publishing, .partial] { try await begin(stage, held, downloader) }
    async let first = downloader.shutdown()
    async let second = downloader.shutdown()
    _ = await (first, second)
    try await checkAfterwards(Stage.allCases, held)
  }

  @Test func aDownloaderThatNeverDidAnythingEnds() async throws {
    let held = Held(bytes, url: url, storage: storage)
    let downloader = try await downloader(held)
    await downloader.shutdown()
    await downloader.shutdown()
    await #expect { try await downloader.pauseAll() } throws: { code($0) == .shutDown }
    await #expect { try await downloader.waitUntilIdle() } throws: { code($0) == .shutDown }
    await downloader.setSuspended(true)
    #expect(held.source.stops == 1)
  }
}
