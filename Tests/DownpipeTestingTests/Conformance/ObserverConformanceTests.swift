import DownpipeCore
import DownpipeTesting
import HangLimit
import Testing

@Suite(.endsHangs)
struct ObserverConformanceTests {
  /// An observer that calls a closure.
  struct ClosureObserver: Observer {
    let observing: @Sendable (AsyncStream<DownloadEvent>) async -> Void
    func observe(_ events: AsyncStream<DownloadEvent>) async { await observing(events) }
  }

  private static func run(
    limit: Duration = .hangLimit, _ observing: @escaping @Sendable (AsyncStream<DownloadEvent>) async -> Void
  ) async throws {
    try await ObserverConformance(ClosureObserver(observing: observing), limit: limit).run()
  }

  @Test func rightObserversPass() async throws {
    try await ObserverConformance(RecordingObserver()).run()
    try await Self.run { for await _ in $0 {} }
  }

  struct Flaw: Sendable, CustomTestStringConvertible {
    let rule: String
    /// The time limit. Only stages that hang reach it; others may be slow on a busy machine.
    var limit = Duration.hangLimit
    let observe: @Sendable () -> @Sendable (AsyncStream<DownloadEvent>) async -> Void
    var testDescription: String { rule }
  }

  @Test(arguments: [
    Flaw(rule: "ends-with-the-events", limit: .seconds(5)) {
      { events in
        for await _ in events {}
        await Task { await Watched(false).wait { $0 } }.value
      }
    },
    Flaw(rule: "reads-to-the-end") { { _ in } },
    Flaw(rule: "reads-to-the-end") {
      { events in
        for await event in events where event.kind == .state(.cancelled) { return }
      }
    },
    Flaw(rule: "copes-with-gaps") {
      { events in
        var iterator = events.makeAsyncIterator()
        // Depends on the first event of a download.
        guard let first = await iterator.next(), case .started = first.kind else { return }
        while await iterator.next() != nil {}
      }
    },
    Flaw(rule: "observes-again") {
      let isBusy = Watched(false)
      return { events in
        let wasBusy = isBusy.update { busy in
          defer { busy = true }
          return busy
        }
        if wasBusy { return }
        for await _ in events {}
        isBusy.update { $0 = false }
      }
    },
  ])
  func aFlawIsFound(_ flaw: Flaw) async throws {
    let broken = try await brokenRules { try await Self.run(limit: flaw.limit, flaw.observe()) }
    // Under a short limit, which a flaw that hangs needs, a busy machine may miss other rules as well.
    #expect(flaw.limit == .hangLimit ? broken == [flaw.rule] : broken.contains(flaw.rule))
  }
}
