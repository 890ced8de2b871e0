import HangLimit
import Testing

@testable import DownpipeCore

/// When watchers are told that downloads may wait for other reasons, and which downloads are read for them.
@Suite(.endsHangs)
struct ReasonNewsTests {
  private let many = (0..<250).map { DownloadID("\($0)") }

  private func ticks(_ reasons: inout ReasonNews) -> Bool { reasons.tick() }
  private func read(_ reasons: inout ReasonNews, _ watched: [DownloadID], whileBusy isBusy: Bool) -> [DownloadID] {
    reasons.take(of: watched, whileBusy: isBusy)
  }

  @Test func whileNothingRunsAllAreReadAtOnce() {
    var reasons = ReasonNews()
    #expect(!reasons.isDue(whileBusy: false))
    reasons.mayHaveChanged = true
    #expect(reasons.isDue(whileBusy: false))
    let all = read(&reasons, many, whileBusy: false)
    #expect(all == many)
    let isLeft = ticks(&reasons)
    #expect(!isLeft && !reasons.isDue(whileBusy: false))
  }

  @Test func whileDownloadsRunAFewAreReadFromTimeToTime() {
    var reasons = ReasonNews()
    var hasNews = ticks(&reasons)
    #expect(!hasNews)
    reasons.mayHaveChanged = true
    #expect(!reasons.isDue(whileBusy: true), "slots change all the time")
    var pages: [[DownloadID]] = []
    for _ in 0..<3 {
      hasNews = ticks(&reasons)
      #expect(hasNews && reasons.isDue(whileBusy: true))
      pages.append(read(&reasons, many, whileBusy: true))
      #expect(!reasons.isDue(whileBusy: true))
      // What changes meanwhile is news after these.
      if pages.count == 1 { reasons.mayHaveChanged = true }
    }
    #expect(pages.map(\.count) == [100, 100, 50] && pages.flatMap(\.self) == many)
    hasNews = ticks(&reasons)
    #expect(hasNews)
    let next = read(&reasons, ["a"], whileBusy: true)
    hasNews = ticks(&reasons)
    #expect(next == ["a"] && !hasNews)
  }

  @Test func whatIsUrgentIsReadAtOnce() {
    var reasons = ReasonNews()
    reasons.mayHaveChanged = true
    _ = ticks(&reasons)
    _ = read(&reasons, many, whileBusy: true)
    reasons.isUrgent = true
    #expect(reasons.isDue(whileBusy: true))
    let all = read(&reasons, many, whileBusy: true)
    #expect(all == many)
    let isLeft = ticks(&reasons)
    #expect(!reasons.isDue(whileBusy: true) && !isLeft)
  }
}
