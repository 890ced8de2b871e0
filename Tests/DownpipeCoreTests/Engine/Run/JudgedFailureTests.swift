import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// A failure on which the retry policy has decided.
@Suite(.endsHangs)
struct JudgedFailureTests {
  private func judged(_ decision: RetryDecision, consecutive: Int = 1) -> JudgedFailure {
    let error = DownloadError(.network, "lost")
    return JudgedFailure(error: error, failure: Failure(error: error, consecutive: consecutive), decision: decision)
  }

  @Test func aPlaceIsLeftIfThePolicyWouldNotTryItAgain() {
    for (hasBytes, canRefresh) in [(true, true), (true, false), (false, true), (false, false)] {
      func isFinal(_ decision: RetryDecision) -> Bool {
        judged(decision).isFinal(hasBytes: hasBytes, canRefresh: canRefresh)
      }
      #expect(isFinal(.giveUp))
      #expect(!isFinal(.resume(after: .zero)) && !isFinal(.restart(after: .zero)))
      #expect(!isFinal(.wait(for: .disk, atMost: .zero)))
      #expect(isFinal(.wait(for: .network, atMost: .zero)) == !hasBytes, "a partial is worth waiting for")
      #expect(isFinal(.refresh(after: .zero)) == !canRefresh)
    }
  }

  @Test func itHoldsAsLongAsTheCountsOfTheFailureAreTheSame() {
    let judged = judged(.giveUp, consecutive: 2)
    var other = judged.failure
    other.random = 0.9
    #expect(judged.holds(for: other))
    other.consecutive = 1
    #expect(!judged.holds(for: other))
  }

  @Test func thePlaceIsAddedToTheError() {
    let located = judged(.giveUp).located(stage: "HTTP", url: nil, attempt: 3)
    #expect(located.error.stage == "HTTP" && located.error.attempt == 3 && located.decision == .giveUp)
  }

  @Test("a run applies the decision that it was given, and asks the policy only if the counts have changed")
  func endOfARun() async throws {
    let fixture = try await RunFixture()
    let run = try fixture.run("a")
    let first = run.judge(DownloadError(.network, "lost"))
    let decided = JudgedFailure(error: first.error, failure: first.failure, decision: .wait(for: .disk, atMost: .zero))
    guard case .failed(let error, let decision) = await run.fail(decided) else {
      Issue.record("the run has not failed")
      return
    }
    #expect(error.code == .network && error.url == run.request.url.redacted)
    #expect(decision == .wait(for: .disk, atMost: .zero))
    run.update { $0.consecutiveFailures = 5 }
    guard case .failed(_, let another) = await run.fail(decided) else {
      Issue.record("the run has not failed")
      return
    }
    #expect(another != .wait(for: .disk, atMost: .zero))
  }
}
