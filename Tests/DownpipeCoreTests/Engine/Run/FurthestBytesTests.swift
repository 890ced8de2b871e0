import HangLimit
import Testing

@testable import DownpipeCore

/// The furthest bytes of failed downloads.
@Suite(.endsHangs)
struct FurthestBytesTests {
  @Test func theFarthestCounts() {
    let furthest = FurthestBytes()
    #expect(furthest.before("a", atLeast: 7) == 7, "at least the bytes at the start of the run")
    furthest.note("a", 100)
    furthest.note("a", 50)
    #expect(furthest.before("a", atLeast: 7) == 100)
    #expect(furthest.before("a", atLeast: 200) == 200)
    #expect(furthest.before("b", atLeast: 0) == 0)
    furthest.forget("a")
    #expect(furthest.before("a", atLeast: 7) == 7)
    furthest.forget("never there")
  }

  @Test func whatDoesNotFitInIsJudgedByItsLastRunAlone() {
    let furthest = FurthestBytes()
    for index in 0..<100_000 { furthest.note(DownloadID("d\(index)"), 10) }
    furthest.note("one more", 10)
    #expect(furthest.before("one more", atLeast: 3) == 3)
    furthest.note("d5", 20)
    #expect(furthest.before("d5", atLeast: 0) == 20, "known downloads are still updated")
    furthest.forget("d5")
    furthest.note("one more", 10)
    #expect(furthest.before("one more", atLeast: 3) == 10)
  }
}
