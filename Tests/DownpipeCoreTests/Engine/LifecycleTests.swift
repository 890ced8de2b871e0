@_spi(Ledger) import DownpipeCore
import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// Invariants of the lifecycle, checked with random sequences of events. The tests do not repeat the table itself.
@Suite(.endsHangs)
struct LifecycleTests {
  private typealias Event = Lifecycle.Event
  private typealias Phase = DownloadState.Phase

  private func record() throws -> DownloadRecord {
    DownloadRecord(
      request: try DownloadRequest("https://example.org/a", id: "a"), generation: 1, arrival: 1,
      rank: Rank().ascending(Int64(1)), createdAt: Date(timeIntervalSince1970: 1))
  }

  @Test(arguments: 0..<50)
  func invariantsHoldOverAnySequenceOfEvents(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var record = try record()
    for _ in 0..<200 {
      // Fields that the engine and the ledgers write between events.
      if record.phase.isActive {
        record.owner = "me"
        record.checkpoint.ranges.insert(contentsOf: 0..<Int64.random(in: 1...100, using: &generator))
        record.consecutiveFailures += Int.random(in: 0...1, using: &generator)
        record.error = Bool.random(using: &generator) ? DownloadError(.network, "cut") : nil
      } else if record.phase == .waiting, Bool.random(using: &generator) {
        record.notBefore = Date(timeIntervalSince1970: 2)
      }
      let event = try #require(Event.allCases.randomElement(using: &generator))
      let before = record
      let isMeaningful = record.apply(event)
      let asksForMore = event == .resumeTogether && !before.isPausedTogether
      #expect(isMeaningful == (Lifecycle.next(before.phase, event) != nil && !asksForMore))
      guard isMeaningful else {
        #expect(record == before, "an illegal event changes nothing")
        continue
      }
      #expect(record.phase == Lifecycle.next(before.phase, event))
      #expect(record.notBefore == nil, "\(event): a due time belongs to the wait that set it")
      #expect(record.phase.isActive || record.owner == nil, "\(event): only an active download has an owner")
      #expect(record.isPausedTogether == (event == .pauseAll), "\(event): only pauseAll pauses together")
      #expect(
        record.attempts == ([.restart, .refresh].contains(event) ? 0 : before.attempts + (event == .leased ? 1 : 0)))
      #expect(record.generation == before.generation)
      if record.phase == .cancelled || before.phase == .cancelled || event == .restart {
        #expect(record.checkpoint == Checkpoint(), "a cancelled download has no bytes")
        #expect(record.steps == StepLog())
      } else if before.phase != .finished || event == .refresh {
        #expect(record.checkpoint == before.checkpoint, "\(event) keeps all bytes")
      }
      if event == .refresh {
        #expect(record.steps == before.steps && record.refreshing == .asking, "the published file stays known")
      }
      if record.phase == .finished || record.phase == .cancelled { #expect(record.refreshing == nil) }
      if [.resume, .resumeTogether, .restart, .refresh, .addedAgain].contains(event) {
        #expect(record.error == nil && record.consecutiveFailures == 0, "\(event) gives back all attempts")
      }
      #expect(record.wasInterrupted == (event == .leaseLost || (before.wasInterrupted && !forgets(event))))
    }
  }

  /// Whether an interrupted run's published file no longer matters after an event.
  private func forgets(_ event: Lifecycle.Event) -> Bool {
    [.stepsComplete, .artifactLost, .cancel].contains(event)
  }

  @Test func onlyALeaseMakesActive() {
    for phase in Phase.allCases where !phase.isActive {
      for event in Event.allCases where event != .leased {
        #expect(Lifecycle.next(phase, event)?.isActive != true)
      }
    }
    #expect(Lifecycle.phases(accepting: .leased) == [.waiting])
  }

  @Test func whatIsFinishedStaysSoUnlessItsFileIsGoneOrFetchedAgain() {
    for event in Event.allCases where ![.artifactLost, .discard, .restart, .refresh].contains(event) {
      #expect(Lifecycle.next(.finished, event) == nil)
    }
    #expect(Lifecycle.next(.finished, .artifactLost) == .waiting)
    #expect(Lifecycle.next(.finished, .restart) == .waiting)
    #expect(Lifecycle.next(.finished, .refresh) == .waiting)
    #expect(Lifecycle.phases(accepting: .refresh) == [.finished], "only a finished download has a file to ask about")
    #expect(Lifecycle.next(.finished, .discard) == .cancelled)
  }

  @Test func everyPhaseCanBeReachedAndLeft() {
    var reached: Set<Phase> = [.waiting]
    for _ in Phase.allCases {
      for phase in reached { reached.formUnion(Event.allCases.compactMap { Lifecycle.next(phase, $0) }) }
    }
    #expect(reached == Set(Phase.allCases))
    for phase in Phase.allCases { #expect(Event.allCases.contains { Lifecycle.next(phase, $0) != nil }) }
  }

  @Test func everyEventMeansSomething() {
    for event in Event.allCases { #expect(!Lifecycle.phases(accepting: event).isEmpty, "\(event)") }
  }

  @Test func whatWasCancelledIsOnlyRestarted() {
    for event in Event.allCases {
      #expect((Lifecycle.next(.cancelled, event) != nil) == (event == .restart), "\(event)")
    }
  }

  @Test func whatTheUserPausedIsNotResumedWithTheOthers() throws {
    var record = try record()
    for event in [Event.pause, .pauseAll, .resumeTogether] { record.apply(event) }
    #expect(record.phase == .paused)
    for event in [Event.resume, .pauseAll] { record.apply(event) }
    #expect(record.isPausedTogether)
    record.apply(.resumeTogether)
    #expect(record.phase == .waiting)
    // Paused together, resumed, then paused individually.
    for event in [Event.pauseAll, .resume, .pause, .resumeTogether] { record.apply(event) }
    #expect(record.phase == .paused)
  }

  @Test func theUserCanEndWhateverHasNotEnded() {
    for phase in Phase.allCases where phase != .finished && phase != .cancelled {
      #expect(Lifecycle.next(phase, .cancel) == .cancelled)
    }
    for phase in [Phase.waiting, .transferring, .processing] {
      #expect(Lifecycle.next(phase, .pause) == .paused)
      #expect(Lifecycle.next(phase, .pauseAll) == .paused)
    }
  }
}
