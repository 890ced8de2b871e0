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

/// A secret in each place of a request: none comes out of the observers, events, errors and states.
@Suite(.endsHangs)
struct SecretsTests {
  @Test(arguments: [true, false])
  func nothingSecretComesOut(_ succeeds: Bool) async throws {
    let url = try #require(URL(string: "https://CANARY:CANARY@a.test/film?CANARY&passkey=CANARY&k=CANARY#CANARY"))
    let mirror = try #require(URL(string: "https://CANARY@b.test/film?pin=CANARY;h=CANARY"))
    let fresh = try #require(URL(string: "https://user:CANARY@d.test/film?CANARY"))
    let hop = try #require(URL(string: "https://user:CANARY@c.test/film?user=CANARY#sig=CANARY"))
    let bytes = DownloadFixtures.pattern(size: 5000)
    let broken = NSError(
      domain: "transport", code: 1,
      userInfo: [NSLocalizedDescriptionKey: "cannot read \(mirror.absoluteString)", NSURLErrorKey: mirror])
    let served = FakeSource.Script(bytes).with { $0.redirects = [hop] }
    let source = FakeSource([
      url: [served.failing(after: 3000, with: broken), .status(403)], mirror: [.failingToOpen(broken)],
      fresh: [succeeds ? served : .failingToOpen(broken)],
    ])
    let log = InMemoryLogHandler()
    var logger = Logger(label: "downloads") { _ in log }
    logger.logLevel = .trace
    let tracer = InMemoryTracer()
    let metrics = TestMetrics()
    let observer = RecordingObserver()
    let downloader = try await Downloader(options: DownloaderOptions(time: VirtualTime())) {
      source
      FakeStorage()
      Retry(.constant(.zero, attempts: 3))
      FakeLinkRefresher { _ in FreshLink(fresh) }
      TracingObserver(tracer: tracer)
      MetricsObserver(countInterval: .seconds(1), factory: metrics)
      LogObserver(logger, levels: .init(progress: .trace))
      observer
    }
    let request = DownloadRequest(
      url, id: "a", mirrors: [mirror]
    ).with(\.headers, ["Authorization": "Bearer CANARY", "Cookie": "s=CANARY", "X-Key": "CANARY"])
    let download = try await downloader.add(request)
    var texts: [String] = []
    do {
      _ = try await download.value
      #expect(succeeds)
    } catch {
      #expect(!succeeds)
      texts += ["\(error)", String(reflecting: error), error.localizedDescription]
      let error = try #require(error as? DownloadError)
      texts.append(String(decoding: try JSONEncoder().encode(error), as: UTF8.self))
    }
    texts.append("\(try await download.status)")
    await downloader.shutdown()

    texts += log.entries.map { "\($0.message) \($0.metadata)" }
    texts += observer.events.map { "\($0)" }
    texts += tracer.finishedSpans.map { "\($0.operationName) \($0.attributes) \($0.events) \($0.errors)" }
    texts += metrics.counters.map { "\($0.label) \($0.dimensions)" }
    texts += metrics.timers.map { "\($0.label) \($0.dimensions)" }
    texts.append("\(downloader)")
    #expect(texts.contains { $0.contains("c.test") } && texts.contains { $0.contains("d.test") })
    for text in texts { #expect(!text.contains("CANARY"), "\(text)") }
  }
}
