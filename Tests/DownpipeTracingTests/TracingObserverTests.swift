import DownpipeCore
import DownpipeTesting
import DownpipeTracing
import Foundation
import HangLimit
import InMemoryTracing
import Testing
import Tracing

@Suite(.endsHangs)
struct TracingObserverTests {
  private let tracer = InMemoryTracer()
  private let error = DownloadError(.httpStatus, "busy at https://example.org/?sig=SECRET", httpStatus: 503)
  private let start = Date(timeIntervalSince1970: 1_000_000_000)

  private func observe(_ events: [DownloadEvent]) async {
    let (stream, feed) = AsyncStream<DownloadEvent>.makeStream()
    for event in events { feed.yield(event) }
    feed.finish()
    await TracingObserver(tracer: tracer).observe(stream)
  }

  private func events(_ request: DownloadRequest, _ kinds: [(Int, DownloadEvent.Kind)]) -> [DownloadEvent] {
    kinds.map { DownloadEvent(request, $0.1, date: start.addingTimeInterval(Double($0.0)), instant: .seconds($0.0)) }
  }

  private func request() throws -> DownloadRequest {
    try DownloadRequest("https://user:SECRET@example.org/a?sig=SECRET", id: "a", tags: ["film"])
  }

  private func times(_ span: FinishedInMemorySpan) -> [UInt64] {
    [span.startInstant, span.endInstant].map { $0.nanosecondsSinceEpoch / 1_000_000_000 - 1_000_000_000 }
  }

  private func attribute(_ name: String, _ span: FinishedInMemorySpan) -> SpanAttribute? { span.attributes.get(name) }

  @Test func keepsTheContractOfObservers() async throws {
    try await ObserverConformance(TracingObserver(tracer: tracer)).run()
    #expect(tracer.activeSpans.isEmpty)
  }

  @Test func aDownloadHasASpanWithAChildForEachPart() async throws {
    let artifact = Artifact(location: .memory([1]), name: "a", size: .known(1))
    let later = Date(timeIntervalSince1970: 4_000_000_000)
    await observe(
      events(
        try request(),
        [
          (0, .state(.waiting(.gate(id: "Online", text: "Online: no route")))), (3, .state(.transferring)),
          (4, .started(attempt: 1, from: 0)), (4, .redirected(to: "https://cdn.example.org/")),
          (5, .progress(TransferProgress(fetched: 400))), (6, .attemptFailed(error)),
          (6, .state(.waiting(.retry(at: later, after: error)))), (16, .state(.transferring)),
          (18, .started(attempt: 2, from: 400)), (19, .progress(TransferProgress(fetched: 564))),
          (20, .state(.processing(step: "Gunzip"))), (25, .stepFinished(name: "Gunzip")),
          (26, .state(.finished(artifact))),
        ]))
    #expect(tracer.activeSpans.isEmpty)
    let spans = tracer.finishedSpans
    #expect(
      spans.map(\.operationName) == [
        "download.wait", "download.attempt", "download.wait", "download.attempt", "download.step", "download",
      ])
    #expect(spans.map(times) == [[0, 3], [3, 6], [6, 16], [16, 20], [20, 25], [0, 26]])
    let download = try #require(spans.last)
    #expect(spans.dropLast().allSatisfy { $0.parentSpanID == download.spanID && $0.traceID == download.traceID })
    #expect(attribute("downpipe.ending", download) == .string("finished"))
    #expect(attribute("downpipe.bytes", download) == .int64(964))
    #expect(attribute("url.full", download) == .string("https://…@example.org/a?sig=…"))
    #expect(download.status == nil)
    // The failed attempt has the error, the reply and the redirect.
    let attempt = spans[1]
    #expect(attempt.kind == .client)
    #expect(attempt.status?.code == .error)
    #expect(attempt.errors.map { ($0.error as? DownloadError)?.code } == [.httpStatus])
    #expect(attribute("error.type", attempt) == .string("httpStatus"))
    #expect(attribute("downpipe.attempt", attempt) == .int64(1))
    #expect(attempt.events.map(\.name) == ["reply", "redirected", "failed"])
    #expect(spans[3].status == nil)
    #expect(attribute("downpipe.reason", spans[0]) == .string("gate"))
    #expect(!spans.contains { "\($0)".contains("SECRET") })
  }

  @Test(
    "the spans end in every ending",
    arguments: [
      (DownloadEvent.Kind.state(.paused), "paused"), (.state(.cancelled), "cancelled"), (.removed, "removed"),
      (.state(.failed(DownloadError(.network, "broken"))), "failed"), (.progress(TransferProgress()), "shutdown"),
    ])
  func everyEnding(_ last: DownloadEvent.Kind, _ ending: String) async throws {
    for part in [DownloadEvent.Kind.state(.waiting(.turn)), .state(.transferring), .state(.processing(step: "s"))] {
      tracer.clearAll(includingActive: true)
      await observe(events(try request(), [(1, part), (2, last)]))
      #expect(tracer.activeSpans.isEmpty)
      let spans = tracer.finishedSpans
      #expect(spans.count == 2)
      let download = try #require(spans.last)
      #expect(attribute("downpipe.ending", download) == .string(ending))
      #expect(times(download) == [1, 2])
      #expect(spans.allSatisfy { ($0.status?.code == .error) == (ending == "failed") })
    }
  }

  /// The calendar jumps back while a download runs: no span ends before it starts.
  @Test func aJumpOfTheDateDoesNotMatter() async throws {
    let request = try request()
    await observe([
      DownloadEvent(request, .state(.transferring), date: start, instant: .seconds(10)),
      DownloadEvent(request, .removed, date: start.addingTimeInterval(-3600), instant: .seconds(15)),
    ])
    #expect(tracer.finishedSpans.map(times) == [[0, 5], [0, 5]])
  }

  @Test func aShutdownEndsTheSpansOfARealDownloader() async throws {
    let time = VirtualTime()
    let source = FakeSource(everyURL: .init(DownloadFixtures.pattern(size: 5000)).holding(after: 1000))
    let downloader = try await Downloader(options: DownloaderOptions(time: time)) {
      source
      FakeStorage()
      TracingObserver(tracer: tracer)
    }
    try await downloader.add(DownloadRequest("https://example.org/a", id: "a"))
    await source.held(atLeast: 1)
    time.advance(by: .seconds(7))
    await downloader.shutdown()
    #expect(tracer.activeSpans.isEmpty)
    let spans = tracer.finishedSpans
    let attempt = try #require(spans.first { $0.operationName == "download.attempt" })
    #expect(attempt.endInstant.nanosecondsSinceEpoch - attempt.startInstant.nanosecondsSinceEpoch == 7_000_000_000)
    #expect(attribute("downpipe.bytes", attempt) == .int64(1000))
    #expect(attribute("downpipe.ending", try #require(spans.last)) == .string("shutdown"))
  }
}
