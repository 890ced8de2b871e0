public import DownpipeCore
import Foundation

/// Checks that an observer keeps the contract of ``/DownpipeCore/Observer``.
///
/// ```swift
/// try await ObserverConformance(MyLog()).run()
/// ```
/// The suite generates events of every kind for several downloads. It does not check what the observer does with them.
public struct ObserverConformance: Sendable {
  private let observer: any Observer
  private let limit: Duration
  private let exclusions: [ConformanceExclusion]

  /// Creates a suite for an observer. `limit` is the longest time for a rule; excluded rules are not checked.
  public init(
    _ observer: any Observer, limit: Duration = .hangLimit, excluding exclusions: [ConformanceExclusion] = []
  ) {
    self.observer = observer
    self.limit = limit
    self.exclusions = exclusions
  }

  /// Checks every rule.
  /// - Throws: ``ConformanceFailure`` that lists all broken rules.
  public func run() async throws {
    let report = ConformanceReport("ObserverConformance(\(observer.name))", excluding: exclusions, limit: limit)
    let events = try Self.events()
    await report.check("ends-with-the-events", "it returns when the sequence ends, even without an event") {
      await observer.observe(AsyncStream { nil })
      await observer.observe(AsyncStream { nil }, in: Self.context)
    }
    report.build(on: "ends-with-the-events")
    await report.check("reads-to-the-end", "it reads events of every kind until the sequence ends") {
      try await observe(events)
    }
    report.build(on: "reads-to-the-end")
    await report.check("copes-with-gaps", "it works when the oldest events are missing") {
      for first in 1..<events.count { try await observe(Array(events[first...])) }
      try await observe(events.reversed())
    }
    await report.check("observes-again", "it observes several downloaders, also at the same time") {
      try await withThrowingTaskGroup(of: Void.self) { group in
        let begun = Watched(0)
        for _ in 0..<4 {
          group.addTask {
            // An observer that has returned counts as started.
            defer { begun.update { $0 += 1 } }
            try await observe(events) {
              // No observer gets an event before all of them have started.
              begun.update { $0 += 1 }
              await begun.wait { $0 >= 4 }
            }
          }
        }
        try await group.waitForAll()
      }
    }
    try report.finish()
  }

  /// Passes the events to the observer and checks that it requests all of them. `begin` runs before the first one.
  private func observe(
    _ events: [DownloadEvent], _ begin: @escaping @Sendable () async -> Void = {}
  ) async throws {
    let asked = Watched(0)
    let stream = AsyncStream<DownloadEvent> {
      let number = asked.update { count in
        count += 1
        return count
      }
      if number == 1 { await begin() }
      return number <= events.count ? events[number - 1] : nil
    }
    // As a downloader calls it.
    await observer.observe(stream, in: Self.context)
    try expect(asked.value > events.count, "it returned after \(asked.value) of \(events.count) events")
  }

  /// A context whose counts fail every second time.
  private static var context: ObserverContext {
    let readings = Watched(0)
    return ObserverContext {
      let number = readings.update { count in
        count += 1
        return count
      }
      if number.isMultiple(of: 2) { throw DownloadError(.ledger, "conformance") }
      return [.waiting: number]
    }
  }

  /// Events of every kind, for downloads with unusual names.
  private static func events() throws -> [DownloadEvent] {
    let error = DownloadError(.network, "conformance", stage: "Conformance", httpStatus: 503)
    let artifact = Artifact(location: .memory([1, 2, 3]), name: "conformance.bin", size: .known(3))
    let later = Date(timeIntervalSince1970: 4_000_000_000)
    let states: [DownloadState] = [
      .waiting(.turn), .waiting(.gate(id: "conformance", text: "conformance")),
      .waiting(.limit(id: "conformance", text: "conformance")), .waiting(.machine(code: .noSpace, text: "conformance")),
      .waiting(.preempted(by: "conformance")), .waiting(.retry(at: later, after: error)), .waiting(.elsewhere),
      .waiting(.dependency("conformance", .failed)), .transferring, .processing(step: "Conformance"), .paused,
      .failed(error), .cancelled, .finished(artifact),
    ]
    let progress = [
      TransferProgress(), TransferProgress(received: 5, total: .known(10), bytesPerSecond: 2.5, fetched: 7),
      TransferProgress(received: .max, total: .known(0), bytesPerSecond: .infinity, fetched: .max),
    ]
    var kinds: [DownloadEvent.Kind] = [
      .started(attempt: 1, from: 0), .started(attempt: 2, from: 5), .restarted(error), .refused(error),
      .attemptFailed(error), .redirected(to: "https://example.org/"), .linkRefreshed(to: "https://example.org/"),
      .stepProgress(StepProgress(completed: 5)), .stepProgress(StepProgress(completed: .max, total: 0, items: .max)),
      .verified([VerifiedDigest(FileDigest(.crc32, bytes: [0, 1, 2, 3]), from: .server)]),
      .stepFinished(name: "Conformance"), .removed,
    ]
    kinds += states.map { .state($0) } + progress.map { .progress($0) }
    let requests = try ["conformance", "line\nbreak \u{0}", String(repeating: "ü", count: 100)].map { id in
      try DownloadRequest("https://example.org/conformance", id: DownloadID(id))
    }
    return kinds.flatMap { kind in requests.map { DownloadEvent($0, kind) } }
  }
}
