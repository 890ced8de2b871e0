@_spi(Ledger) import DownpipeCore
@_spi(Ledger) import DownpipeTesting
import Foundation
import HangLimit
import Testing

/// The fakes that call a closure and record their calls.
@Suite(.endsHangs)
struct FakeStagesTests {
  @Test func theGatePublishesBeforeItReturns() async throws {
    let gate = FakeGate(.closed("not yet"), name: "Hand")
    let seen = Watched<[GateRule.Verdict]>([])
    let watch = Task {
      try await gate.watch { rule in seen.update { $0.append(rule.verdict(for: Candidate())) } }
    }
    await gate.watchers(atLeast: 1)
    gate.open()
    gate.close("night")
    gate.publish(.each { _ in .open })
    #expect(seen.value == [.closed("not yet"), .open, .closed("Hand: night"), .open])
    watch.cancel()
    await #expect(throws: CancellationError.self) { try await watch.value }
    #expect(gate.watchers == 0)
    gate.close("after the end")
    #expect(seen.value.count == 4)
  }

  @Test func theGateEndsItsWatches() async throws {
    let gate = FakeGate()
    gate.endWatching()
    try await gate.watch { _ in }
    gate.endWatching(throwing: DownloadError(.network, "the watch broke"))
    await #expect(throws: DownloadError.self) { try await gate.watch { _ in } }
  }

  @Test func policiesRecordWhatTheyAreAsked() {
    let scheduling = FakeSchedulingPolicy()
    let context = RankingContext(id: "a", arrival: 3)
    #expect(scheduling.rank(context) == Rank().ascending(3))
    #expect(scheduling.contexts == [context])

    let admission = FakeAdmissionPolicy(maximumConcurrent: 2) { _, running in
      running.total < 2 ? .admitted : .full("two")
    }
    #expect(admission.admit(Candidate(), beside: RunningDownloads()) == .admitted)
    #expect(admission.questions.map(\.answer) == [.admitted])
    #expect(admission.maximumConcurrent == 2)
  }

  @Test func theRetryPolicyFollowsItsScript() async {
    let policy = FakeRetryPolicy(.resume(after: .seconds(1)), .restart(after: .zero))
    let failure = Failure(error: DownloadError(.network, "x"), consecutive: 1, attempts: 1, random: 0)
    #expect(
      (0..<3).map { _ in policy.decide(failure) } == [.resume(after: .seconds(1)), .restart(after: .zero), .giveUp])
    await policy.failures(atLeast: 3)
    #expect(policy.failures.map(\.error.code) == [.network, .network, .network])
  }

  @Test func theInterceptorWrapsTheSource() async throws {
    let source = FakeSource(everyURL: .init([1]))
    let interceptor = FakeInterceptor { request, next in
      var request = request
      request.headers["X-Test"] = "1"
      return try await next(request)
    }
    let url = URL(filePath: "/a")
    _ = try await interceptor.intercept(SourceRequest(url: url)) { try await source.open($0) }
    _ = try await FakeInterceptor().intercept(SourceRequest(url: url)) { try await source.open($0) }
    #expect(interceptor.requests.map { $0.headers["X-Test"] } == [nil])
    #expect(source.requests.map { $0.headers["X-Test"] } == ["1", nil])
  }

  @Test func theObserverWaitsForEvents() async {
    let observer = RecordingObserver(capacity: 2)
    let (events, feed) = AsyncStream.makeStream(of: DownloadEvent.self)
    let watching = Task { await observer.observe(events) }
    feed.yield(DownloadEvent(DownloadRequest(URL(filePath: "/a"), id: "a"), .state(.transferring)))
    feed.yield(DownloadEvent(DownloadRequest(URL(filePath: "/b"), id: "b"), .state(.paused)))
    feed.yield(DownloadEvent(DownloadRequest(URL(filePath: "/a"), id: "a"), .state(.cancelled)))
    #expect(await observer.wait(for: "a", toBe: .cancelled))
    #expect(observer.states(of: "a") == [.cancelled])
    #expect(observer.events.count == 2)
    #expect(!observer.hasEnded)
    feed.finish()
    #expect(await !observer.wait { $0.isEmpty })
    await watching.value
    #expect(observer.hasEnded)
  }

  @Test func theStepRecordsItsInputs() async throws {
    let step = FakePostProcessor.bytes(name: "Reverse") { $0.reversed() }
    let input = Artifact(location: .memory([1, 2, 3]), name: "a", size: .known(3))
    let context = ProcessingContext(
      request: try DownloadRequest("https://example.org/a"), workspace: nil, priorNote: "before")
    let output = try await step.process(File(input), in: context)
    #expect(output.artifact.location == .memory([3, 2, 1]))
    #expect(step.inputs == [input])
    #expect(step.priorNotes == ["before"])
    await step.calls(atLeast: 1)
  }

  @Test func theLedgerIsSlow() async throws {
    let ledger = FaultyLedger(MemoryLedger())
    ledger.hold(.record, at: 2)
    let store = try await ledger.open()
    #expect(try await store.record("a") == nil)
    let slow = Task { try await store.record("a") }
    await ledger.calls(of: .record, atLeast: 2)
    // Other calls do not wait.
    #expect(try await store.record("a") == nil)
    let addition = LedgerAddition(
      request: try DownloadRequest("https://example.org/a", id: "a"), arrival: 1)
    _ = try await store.add([addition], at: Date(timeIntervalSince1970: 0))
    ledger.release()
    // The call was held before it had an effect.
    #expect(try await slow.value != nil)
    try await store.close()
  }

  @Test func theLedgerPassesOnWhatIsNotToFail() async throws {
    let ledger = FaultyLedger(MemoryLedger())
    let error = DownloadError(.ledger, "the disk is full")
    let now = Date(timeIntervalSince1970: 0)
    let store = try await ledger.open()
    let other = try await ledger.open()
    try await store.rank(by: Ranking(name: "test") { Rank().ascending($0.arrival) })
    let request = try DownloadRequest("https://example.org/a", id: "a").with(\.sizeHint, 7)
    _ = try await store.add([LedgerAddition(request: request, arrival: 1)], at: now)
    for (operation, call) in [(FaultyLedger.Operation.rank, 2), (.update, 1), (.totals, 1), (.unsettledMoves, 1)] {
      ledger.fail(operation, at: call, with: error)
    }
    await #expect(throws: error) { try await store.rank(by: .arrival) }
    await #expect(throws: error) { _ = try await store.update("a", at: now) { _ in } }
    await #expect(throws: error) { _ = try await store.totals(.all) }
    await #expect(throws: error) { _ = try await store.unsettledMoves() }
    #expect(try await store.update("a", at: now) { $0.request.priority = .high }?.request.priority == .high)
    #expect(try await store.totals(.all).expected == 7)
    #expect(try await store.unsettledMoves() == [])
    var heard = try #require(other.changesByOthers).makeAsyncIterator()
    #expect(await heard.next(isolation: #isolation) != nil)
    #expect(ledger.calls.suffix(3) == [.update, .totals, .unsettledMoves])
    try await store.close()
    try await other.close()
  }

  @Test func theLedgerFailsBeforeOrAfter() async throws {
    let ledger = FaultyLedger(MemoryLedger())
    let error = DownloadError(.ledger, "the disk is full")
    let now = Date(timeIntervalSince1970: 0)
    ledger.fail(.add, at: 1, with: error)
    ledger.fail(.add, at: 2, .after, with: error)
    let store = try await ledger.open()
    let addition = LedgerAddition(
      request: try DownloadRequest("https://example.org/a", id: "a"), arrival: 1)
    await #expect(throws: error) { _ = try await store.add([addition], at: now) }
    #expect(try await store.record("a") == nil)
    await #expect(throws: error) { _ = try await store.add([addition], at: now) }
    #expect(try await store.record("a") != nil)
    #expect(try await store.add([addition], at: now).map(\.isNew) == [false])

    let leased = try await store.lease(LeaseRequest(now: now, until: now + 60) { _ in .take })
    #expect(try await store.save(try #require(leased.first), .state, at: now))
    #expect(ledger.saves.map(\.fields) == [.state])
    #expect(ledger.calls == [.open, .add, .record, .add, .record, .add, .lease, .save])
    await ledger.calls(of: .add, atLeast: 3)
    try await store.close()
  }
}
