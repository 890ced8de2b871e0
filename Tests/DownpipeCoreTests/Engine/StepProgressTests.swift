import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// What steps say about how far they have come.
@Suite(.endsHangs)
struct StepProgressTests: EngineSuite {
  let bytes = DownloadFixtures.pattern(size: 10_000)
  let url = URL(string: "https://example.org/file.bin")!
  let time = VirtualTime()
  let storage = FakeStorage()
  let ledger = MemoryLedger()

  /// Reports what it is told, and waits until it may end.
  private struct Reporting: UniversalPostProcessor {
    let reports: [StepProgress]
    let isReporting = Watched(false)
    let mayEnd = Watched(false)
    let kept = Watched<ProcessingContext?>(nil)
    func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      for report in reports { context.report(report) }
      kept.update { $0 = context }
      isReporting.update { $0 = true }
      await mayEnd.wait { $0 }
      return artifact
    }
  }

  @Test("the status has the latest report, watchers get it with the next tick, and it ends with the step")
  func reports() async throws {
    let last = StepProgress(completed: 75, total: 100, items: 3)
    let step = Reporting(reports: [StepProgress(completed: 1), last])
    let observer = RecordingObserver()
    let downloader = try await Downloader(options: options) {
      FakeSource([url: [.init(bytes)]])
      storage
      AnyLedger(ledger)
      observer
      step
    }
    let download = try await downloader.add(DownloadRequest(url, id: "a"))
    var events = download.events.makeAsyncIterator()
    // The present state comes first: from now on the download is watched.
    _ = await events.next()
    await step.isReporting.wait { $0 }
    #expect(try await download.status.stepProgress == last)
    #expect(last.fraction == 0.75 && StepProgress(completed: 5).fraction == nil)
    #expect(StepProgress(completed: 9, total: 5).fraction == 1 && StepProgress(completed: 0, total: 0).fraction == 1)
    await time.sleeper(dueIn: options.progressInterval, purpose: .progress)
    time.advance(by: options.progressInterval)
    var reported: StepProgress?
    while reported == nil, let event = await events.next() {
      if case .stepProgress(let progress) = event.kind { reported = progress }
    }
    #expect(reported == last)
    step.mayEnd.update { $0 = true }
    _ = try await download.value
    // A step may keep its context.
    step.kept.value?.report(StepProgress(completed: 99))
    #expect(try await download.status.stepProgress == nil)
    await downloader.shutdown()
  }
}
