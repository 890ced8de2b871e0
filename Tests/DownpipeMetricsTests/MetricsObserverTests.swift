import CoreMetrics
import DownpipeCore
import DownpipeMetrics
import DownpipeTesting
import Foundation
import HangLimit
import MetricsTestKit
import Testing

@Suite(.endsHangs)
struct MetricsObserverTests {
  private let metrics = TestMetrics()
  private let error = DownloadError(.httpStatus, "busy", httpStatus: 503)

  private func observe(_ events: [DownloadEvent], hostLabels: Int = 0) async {
    let (stream, feed) = AsyncStream<DownloadEvent>.makeStream()
    for event in events { feed.yield(event) }
    feed.finish()
    await MetricsObserver(hostLabels: hostLabels, factory: metrics).observe(stream)
  }

  private func seconds(_ label: String, _ dimensions: [(String, String)] = []) throws -> [Double] {
    try metrics.expectTimer(label, dimensions).values.map { Double($0) / 1e9 }
  }

  @Test func keepsTheContractOfObservers() async throws {
    try await ObserverConformance(MetricsObserver(hostLabels: 1, factory: metrics)).run()
  }

  @Test func aDownloadIsMeasured() async throws {
    let request = try DownloadRequest("https://example.org/a", id: "a")
    let artifact = Artifact(location: .memory([1]), name: "a", size: .known(1))
    let later = Date(timeIntervalSince1970: 4_000_000_000)
    let events: [(Int, DownloadEvent.Kind)] = [
      (0, .state(.waiting(.turn))), (3, .state(.transferring)), (4, .started(attempt: 1, from: 0)),
      (5, .progress(TransferProgress(received: 400, fetched: 400))), (6, .attemptFailed(error)),
      (6, .state(.waiting(.retry(at: later, after: error)))), (16, .state(.transferring)),
      (18, .started(attempt: 2, from: 400)), (19, .progress(TransferProgress(received: 900, fetched: 564))),
      (20, .state(.processing(step: "Gunzip"))), (25, .stepFinished(name: "Gunzip")), (25, .state(.finished(artifact))),
    ]
    await observe(events.map { DownloadEvent(request, $0.1, instant: .seconds($0.0)) })
    #expect(try metrics.expectCounter("downpipe_received_bytes_total").totalValue == 964)
    #expect(try metrics.expectCounter("downpipe_attempts_total").totalValue == 2)
    let labels = [("code", "httpStatus"), ("status", "503")]
    #expect(try metrics.expectCounter("downpipe_failures_total", labels).totalValue == 1)
    #expect(try metrics.expectCounter("downpipe_ended_total", [("result", "finished")]).totalValue == 1)
    #expect(try seconds("downpipe_waiting_seconds", [("reason", "turn")]) == [3])
    #expect(try seconds("downpipe_waiting_seconds", [("reason", "retry")]) == [10])
    #expect(try seconds("downpipe_latency_seconds") == [1, 2])
    #expect(try seconds("downpipe_attempt_seconds") == [3, 4])
    #expect(try seconds("downpipe_step_seconds", [("step", "Gunzip")]) == [5])
    #expect(try seconds("downpipe_duration_seconds") == [25])
  }

  @Test(arguments: [
    (DownloadEvent.Kind.state(.cancelled), "cancelled"), (.state(.failed(DownloadError(.network, "broken"))), "failed"),
    (.removed, "removed"),
  ])
  func endsAreCountedOnce(_ ending: DownloadEvent.Kind, _ result: String) async throws {
    let request = try DownloadRequest("https://example.org/a", id: "a")
    await observe([.state(.transferring), ending, ending].map { DownloadEvent(request, $0) })
    #expect(try metrics.expectCounter("downpipe_ended_total", [("result", result)]).totalValue == 1)
    #expect(metrics.timers(label: "downpipe_duration_seconds").isEmpty)
  }

  /// 1,000 hosts, codes, statuses and steps that a server or a plug-in may invent.
  @Test func theNumberOfLabelValuesIsBounded() async throws {
    let events = try (0..<1000).flatMap { number in
      let request = try DownloadRequest("https://h\(number).example.org/a", id: DownloadID("\(number)"))
      let error = DownloadError(.init("code\(number)"), "broken", httpStatus: number * 7)
      return [
        DownloadEvent(request, .state(.transferring)), DownloadEvent(request, .attemptFailed(error)),
        DownloadEvent(request, .state(.processing(step: "step\(number)"))), DownloadEvent(request, .removed),
      ]
    }
    await observe(events)
    #expect(metrics.counters(label: "downpipe_attempts_total").count == 1)
    #expect(metrics.timers(label: "downpipe_step_seconds").count == 65)
    let codes = metrics.counters(label: "downpipe_failures_total").flatMap { $0.dimensions.filter { $0.0 == "code" } }
    #expect(Set(codes.map(\.1)).count == 65)
    metrics.reset()
    await observe(events, hostLabels: 2)
    #expect(metrics.counters(label: "downpipe_attempts_total").count == 3)
    #expect(try metrics.expectCounter("downpipe_attempts_total", [("host", "h1.example.org")]).totalValue == 1)
    #expect(try metrics.expectCounter("downpipe_attempts_total", [("host", "other")]).totalValue == 998)
  }

  @Test func statesComeFromTheLedgerAtRegularIntervals() async throws {
    let time = VirtualTime()
    let source = FakeSource(everyURL: .init(DownloadFixtures.pattern(size: 5000)).holding(after: 1000))
    let gate = FakeGate(.closed("not yet"))
    let ledger = MemoryLedger()
    // Of an earlier process: there are no events of these.
    let earlier = try await Downloader(options: DownloaderOptions(time: time)) {
      source
      FakeStorage()
      FakeGate(.closed("not yet"))
      ledger
    }
    try await earlier.add(
      contentsOf: (0..<2).map { try DownloadRequest("https://example.org/\($0)", id: DownloadID("e\($0)")) })
    await earlier.shutdown()

    let downloader = try await Downloader(options: DownloaderOptions(time: time)) {
      source
      FakeStorage()
      gate
      ledger
      MetricsObserver(countInterval: .seconds(30), factory: metrics)
    }
    let purpose = SleepPurpose("metrics")
    await time.sleeper(dueIn: .seconds(30), purpose: purpose)
    #expect(try state("waiting") == 2)
    #expect(try state("transferring") == 0)
    gate.open()
    await source.held(atLeast: 2)
    time.advance(by: .seconds(30))
    await time.sleeper(dueIn: .seconds(30), purpose: purpose)
    #expect(try state("waiting") == 0)
    #expect(try state("transferring") == 2)
    // The last reading does not wait for the interval.
    source.release()
    try await downloader.waitUntilIdle()
    await downloader.shutdown()
    #expect(try state("finished") == 2)
    #expect(try metrics.expectCounter("downpipe_received_bytes_total").totalValue == 10_000)
    #expect(try metrics.expectCounter("downpipe_ended_total", [("result", "finished")]).totalValue == 2)
  }

  private func state(_ name: String) throws -> Double? {
    try metrics.expectGauge("downpipe_downloads", [("state", name)]).lastValue
  }
}
