import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// The record after each outcome.
@Suite(.endsHangs)
struct OutcomeTests {
  private let now = Date(timeIntervalSince1970: 1_000_000)
  private let error = DownloadError(.network, "cut")

  /// An active record with 40 bytes that has failed before.
  private func record(awaiting awaited: Awaited? = nil, isProcessing: Bool = false) throws -> DownloadRecord {
    var record = DownloadRecord(
      request: try DownloadRequest("https://example.org/a", id: "a"), generation: 1, arrival: 1, rank: Rank(),
      createdAt: now)
    record.apply(.leased)
    if isProcessing { record.apply(.bytesComplete) }
    record.owner = "me"
    record.error = DownloadError(.timedOut, "earlier")
    record.awaited = awaited
    record.consecutiveFailures = 2
    record.repeatedFailures = 2
    record.bytesFetched = 50
    record.checkpoint.ranges = ByteRangeSet(0..<40)
    record.steps.note = "under way"
    record.wasInterrupted = true
    return record
  }

  private func apply(_ outcome: Outcome, to record: inout DownloadRecord, hasRefresher: Bool = false) -> DownloadState {
    outcome.apply(
      to: &record,
      stored: { StoredArtifact(kind: $0.kind, path: $0.path, name: $0.name, size: $0.size.bytes, mediaType: nil) },
      hasRefresher: hasRefresher, now: now)
  }

  // MARK: Published

  @Test("a published download is finished, from any active phase", arguments: [true, false])
  func published(isProcessing: Bool) throws {
    var record = try record(awaiting: .link, isProcessing: isProcessing)
    let artifact = Artifact(location: .path("/there"), name: "there", size: .known(40))
    #expect(apply(.published(artifact), to: &record) == .finished(artifact))
    #expect(record.phase == .finished && record.owner == nil)
    #expect(record.checkpoint.isComplete)
    #expect(record.steps.artifact?.path == "/there")
    #expect(record.steps.note == nil, "no step is in progress")
    #expect(record.error == nil && record.awaited == nil && record.notBefore == nil)
    #expect(record.consecutiveFailures == 0 && record.repeatedFailures == 0)
    #expect(!record.wasInterrupted)
    #expect(record.attempts == 1 && record.bytesFetched == 50)
  }

  // MARK: Failed

  private struct Expected {
    let phase: DownloadState.Phase
    var awaited: Awaited?
    var delay: TimeInterval?
    var consecutive = 2
  }

  private static let decisions: [(RetryDecision, hasRefresher: Bool)] = [
    (.resume(after: .seconds(3)), false), (.resume(after: .zero), true), (.restart(after: .seconds(4)), false),
    (.wait(for: .network, atMost: .seconds(30)), false), (.wait(for: .disk, atMost: .seconds(30)), false),
    (.wait(for: .owner, atMost: .seconds(5)), true), (.wait(for: .descriptors, atMost: .seconds(1)), false),
    (.refresh(after: .seconds(2)), true), (.refresh(after: .seconds(2)), false), (.giveUp, false), (.giveUp, true),
  ]

  private static func expected(_ decision: RetryDecision, hasRefresher: Bool) -> Expected {
    switch decision {
    case .resume(let wait), .restart(let wait): Expected(phase: .waiting, delay: wait / .seconds(1))
    // A missing resource is not the server's fault.
    case .wait(let what, let wait):
      Expected(phase: .waiting, awaited: what, delay: wait / .seconds(1), consecutive: 1)
    case .refresh(let wait) where hasRefresher: Expected(phase: .waiting, awaited: .link, delay: wait / .seconds(1))
    case .refresh, .giveUp: Expected(phase: .failed)
    case .giveBack: Expected(phase: .waiting)
    }
  }

  @Test("what is given back waits as before, and the attempt does not count")
  func givenBack() throws {
    let fault = DownloadError(.permission, "no folder", scope: .machine)
    var record = try record(isProcessing: false)
    let (failures, before) = (record.consecutiveFailures, record.error)
    let state = apply(.failed(fault, .giveBack), to: &record, hasRefresher: false)
    #expect(state == .waiting(.machine(code: .permission, text: "this machine pauses: no folder")))
    #expect(record.phase == .waiting && record.owner == nil && record.notBefore == nil)
    #expect(record.attempts == 0 && record.consecutiveFailures == failures && record.error == before)
    #expect(record.checkpoint.ranges.prefixLength == 40)
  }

  @Test("each decision of the retry policy", arguments: decisions)
  func failed(decision: RetryDecision, hasRefresher: Bool) throws {
    for isProcessing in [true, false] {
      let expected = Self.expected(decision, hasRefresher: hasRefresher)
      var record = try record(isProcessing: isProcessing)
      let state = apply(.failed(error, decision), to: &record, hasRefresher: hasRefresher)
      #expect(record.phase == expected.phase && state.phase == expected.phase)
      #expect(record.owner == nil && record.error == error)
      #expect(record.awaited == expected.awaited)
      #expect(record.notBefore == expected.delay.map(now.addingTimeInterval))
      #expect(record.consecutiveFailures == expected.consecutive)
      #expect(record.repeatedFailures == 2 && record.attempts == 1 && record.bytesFetched == 50)
      #expect(record.checkpoint.ranges.prefixLength == 40, "the run deletes bytes, not the outcome")
      #expect(record.wasInterrupted, "a published file may still exist")
      switch state {
      case .waiting(.retry(let due, let after)):
        #expect(expected.awaited == nil && due == record.notBefore && after == error)
      case .waiting(.missing(let what, let due, let after)):
        #expect(what == expected.awaited && due == record.notBefore && after == error)
      case .failed(let after):
        #expect(after == error)
      default:
        Issue.record("\(state)")
      }
    }
  }

  @Test func waitingCostsNoAttemptEvenAtTheFirst() throws {
    var record = try record()
    record.consecutiveFailures = 0
    _ = apply(.failed(error, .wait(for: .network, atMost: .seconds(1))), to: &record)
    #expect(record.consecutiveFailures == 0)
  }

  @Test("a link that has not been refreshed is still expired")
  func deadLinksStayDead() throws {
    for decision in [RetryDecision.resume(after: .zero), .restart(after: .zero), .giveUp] {
      var record = try record(awaiting: .link)
      _ = apply(.failed(error, decision), to: &record, hasRefresher: true)
      #expect(record.awaited == .link)
    }
    // Other missing resources are forgotten.
    var other = try record(awaiting: .disk)
    _ = apply(.failed(error, .resume(after: .zero)), to: &other)
    #expect(other.awaited == nil)
  }

  // MARK: Stopped

  private static let reasons: [(StopReason, DownloadState)] = [
    (.gate(id: "gate", text: "shut"), .waiting(.gate(id: "gate", text: "shut"))),
    (.limit(id: "Limits", text: "2 of 2"), .waiting(.limit(id: "Limits", text: "2 of 2"))),
    (.preempted(by: "b"), .waiting(.preempted(by: "b"))),
    (.suspend, .waiting(.suspended)), (.shutdown, .waiting(.turn)), (.lostLease, .waiting(.turn)),
    (.leaseEnds, .waiting(.turn)),
    (.tooSlow(DownloadError(.timedOut, "slow")), .waiting(.turn)), (.pause, .paused), (.cancel, .cancelled),
    (.remove, .cancelled),
  ]

  @Test("each reason to stop", arguments: reasons)
  func stopped(reason: StopReason, state: DownloadState) throws {
    for isProcessing in [true, false] {
      var record = try record(awaiting: .disk, isProcessing: isProcessing)
      #expect(apply(.stopped(reason), to: &record) == state)
      #expect(record.phase == state.phase && record.owner == nil)
      #expect(record.error == nil && record.awaited == nil, "it was not a failure")
      #expect(record.notBefore == nil, "it may continue at once")
      #expect(record.attempts == 1)
      let isCancelled = state == .cancelled
      #expect(record.wasInterrupted == !isCancelled)
      #expect(record.consecutiveFailures == (isCancelled ? 0 : 2))
      #expect(record.checkpoint.ranges.prefixLength == (isCancelled ? 0 : 40))
      #expect(record.steps.note == (isCancelled ? nil : "under way"))
    }
  }

  @Test func aStoppedDownloadStillNeedsItsLink() throws {
    var paused = try record(awaiting: .link)
    _ = apply(.stopped(.pause), to: &paused)
    #expect(paused.awaited == .link)
    var cancelled = try record(awaiting: .link)
    _ = apply(.stopped(.cancel), to: &cancelled)
    #expect(cancelled.awaited == nil)
  }

  @Test func whatIsNotOursIsNotTouched() throws {
    var record = try record()
    let before = record
    #expect(apply(.notOwned, to: &record) == .waiting(.elsewhere))
    #expect(record == before)
  }
}
