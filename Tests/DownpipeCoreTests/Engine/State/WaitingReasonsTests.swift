import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// The known reasons of watched downloads that wait.
@Suite(.endsHangs)
struct WaitingReasonsTests {
  private let one = Candidate(host: "one"), two = Candidate(host: "two")

  @Test func onlyWhatChangesIsToldAndEachKindIsAskedOnce() {
    var reasons = WaitingReasons()
    for index in 0..<10 { reasons.note(DownloadID("a\(index)"), one, .waiting(.turn)) }
    reasons.note("b", two, .waiting(.turn))
    var asked: [String] = []
    let changed = reasons.takeChanged { candidate in
      asked.append(candidate.host)
      return candidate == one ? .limit(id: "Limits", text: "full") : .turn
    }
    #expect(Set(changed) == Set((0..<10).map { DownloadID("a\($0)") }))
    #expect(asked.sorted() == ["one", "two"])
    #expect(
      reasons.takeChanged { $0 == one ? .limit(id: "Limits", text: "full") : .turn }.isEmpty, "it has been published")
    #expect(reasons.takeChanged(followingQueue: false) { _ in .turn }.isEmpty, "the limit does not matter")
  }

  @Test func whatDoesNotWaitForOthersIsNotFollowed() {
    var reasons = WaitingReasons()
    let error = DownloadError(.network, "broken")
    reasons.note("a", one, .waiting(.turn))
    reasons.note("a", one, .waiting(.retry(at: .distantFuture, after: error)))
    reasons.note("b", one, .waiting(.turn))
    reasons.note("b", one, .paused)
    reasons.note("c", one, .waiting(.turn))
    reasons.forget("c")
    #expect(reasons.takeChanged { _ in .suspended }.isEmpty)
    // The reason of a download that waits for a time is not known after that time; the reasons of the others are.
    #expect(reasons.unknown(of: ["a", "b", "c"]) == ["a", "c"])
    reasons.note("c", one, .waiting(.turn))
    #expect(reasons.unknown(of: ["a", "b", "c"]) == ["a"])
  }

  @Test func tooManyChangesDuringAReadingLeaveItIncomplete() {
    var reasons = WaitingReasons()
    reasons.beginReading()
    for index in 0..<WaitingReasons.most { reasons.note(DownloadID("\(index)"), one, .transferring) }
    #expect(!reasons.isIncomplete)
    #expect(reasons.endReading()?.count == WaitingReasons.most)
    reasons.beginReading()
    for index in 0...WaitingReasons.most { reasons.note(DownloadID("\(index)"), one, .transferring) }
    #expect(reasons.endReading() == nil)
    #expect(reasons.told.isEmpty && reasons.isIncomplete)
  }

  @Test func noMoreAreFollowedThanABatchHolds() {
    var reasons = WaitingReasons()
    for index in 0...WaitingReasons.most { reasons.note(DownloadID("\(index)"), one, .waiting(.turn)) }
    #expect(reasons.told.count == WaitingReasons.most)
    #expect(reasons.isIncomplete)
    reasons.forgetAll()
    #expect(reasons.told.isEmpty && !reasons.isIncomplete)
  }
}
