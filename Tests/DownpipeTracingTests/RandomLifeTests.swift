import DownpipeCore
import DownpipeLogging
import DownpipeMetrics
import DownpipeTesting
import DownpipeTracing
import Foundation
import HangLimit
import InMemoryLogging
import InMemoryTracing
import Logging
import MetricsTestKit
import Testing
import Tracing

/// Random commands to a real downloader with all observers: every span ends, inside its download.
@Suite(.endsHangs)
struct RandomLifeTests {
  @Test(arguments: 0..<20)
  func everySpanEnds(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let tracer = InMemoryTracer()
    let metrics = TestMetrics()
    let time = VirtualTime()
    let gate = FakeGate()
    let bytes = DownloadFixtures.pattern(size: 3000)
    var logger = Logger(label: "downloads") { _ in InMemoryLogHandler() }
    logger.logLevel = .trace
    let broken = DownloadError(.network, "broken")
    let downloader = try await Downloader(options: DownloaderOptions(time: time)) {
      FakeSource(everyURL: seed.isMultiple(of: 2) ? .init(bytes) : .init(bytes).failing(after: 1000, with: broken))
      gate
      FakeRetryPolicy(.resume(after: .seconds(1)))
      FakeStorage()
      TracingObserver(tracer: tracer)
      MetricsObserver(countInterval: .seconds(1), factory: metrics)
      LogObserver(logger, levels: .init(progress: .trace))
    }
    for _ in 0..<60 {
      let id = DownloadID("d\(Int.random(in: 0..<4, using: &generator))")
      switch Int.random(in: 0..<9, using: &generator) {
      case 0, 1, 2: try await downloader.add(DownloadRequest("https://example.org/\(id)", id: id))
      case 3: _ = try? await downloader.pause(id)
      case 4: _ = try? await downloader.resume(id)
      case 5: _ = try? await downloader.cancel(id)
      case 6: _ = try? await downloader.restart(id)
      case 7: _ = try? await downloader.remove(id)
      default: if Bool.random(using: &generator) { gate.close("closed") } else { gate.open() }
      }
      time.advance(by: .milliseconds(Int.random(in: 0..<500, using: &generator)))
    }
    await downloader.shutdown()

    #expect(tracer.activeSpans.isEmpty)
    let downloads = Dictionary(
      tracer.finishedSpans.filter { $0.parentSpanID == nil }.map { ($0.spanID, $0) },
      uniquingKeysWith: { first, _ in first })
    #expect(!downloads.isEmpty)
    for span in tracer.finishedSpans {
      #expect(span.startInstant.nanosecondsSinceEpoch <= span.endInstant.nanosecondsSinceEpoch)
      guard let parent = span.parentSpanID else { continue }
      let download = try #require(downloads[parent])
      #expect(download.startInstant.nanosecondsSinceEpoch <= span.startInstant.nanosecondsSinceEpoch)
      #expect(span.endInstant.nanosecondsSinceEpoch <= download.endInstant.nanosecondsSinceEpoch)
    }
    let ended = tracer.finishedSpans.count { $0.attributes.get("downpipe.ending") == .string("finished") }
    let counted = metrics.counterTotal(label: "downpipe_ended_total", dimensions: [("result", "finished")])
    #expect(Int(counted) == ended)
  }
}
