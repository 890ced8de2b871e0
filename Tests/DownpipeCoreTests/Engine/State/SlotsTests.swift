import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeCore

/// The running downloads, and the counts that admission policies see.
@Suite(.endsHangs)
struct SlotsTests {
  @Test func aRunKeepsItsSlotUntilItsWorkIsOverAndItsPlaceUntilTheLedgerKnows() async throws {
    let fixture = try await RunFixture()
    let run = try fixture.run("a", host: "one.example", tags: ["x"])
    var slots = Slots()
    #expect(!slots.hasRuns)
    let none = slots.insert(run)
    #expect(none == nil)
    #expect(slots.counts.total == 1)
    #expect(slots.counts.perHost == ["one.example": 1])
    #expect(slots.counts.perTag == ["x": 1])
    let isFreed = slots.free(run)
    #expect(isFreed)
    #expect(slots.counts == RunningDownloads())
    #expect(slots.hasRuns && slots.runs["a"] === run)
    #expect(slots.ranked.isEmpty, "a run whose work has ended occupies no slot")
    let isFreedAgain = slots.free(run)
    #expect(!isFreedAgain, "a slot is freed once")
    #expect(slots.counts == RunningDownloads())
    slots.remove(run)
    #expect(!slots.hasRuns)
  }

  @Test func removingFreesTheSlotOnce() async throws {
    let fixture = try await RunFixture()
    let (first, second) = (try fixture.run("a"), try fixture.run("b"))
    var slots = Slots()
    _ = slots.insert(first)
    _ = slots.insert(second)
    slots.remove(first)
    #expect(slots.counts.total == 1)
    slots.remove(first)
    #expect(slots.counts.total == 1)
    slots.remove(second)
    #expect(slots.counts == RunningDownloads())
    #expect(!slots.hasRuns)
  }

  @Test("of two runs of one download the later one is registered, and the end of the earlier one does not remove it")
  func twoRunsOfOneDownload() async throws {
    let fixture = try await RunFixture()
    let (earlier, later) = (try fixture.run("a"), try fixture.run("a"))
    var slots = Slots()
    _ = slots.insert(earlier)
    let displaced = slots.insert(later)
    #expect(displaced === earlier)
    #expect(slots.counts.total == 2, "both may still use the network")
    slots.remove(earlier)
    #expect(slots.runs["a"] === later)
    #expect(slots.counts.total == 1)
    #expect(slots.ranked.map(ObjectIdentifier.init) == [ObjectIdentifier(later)])
    slots.remove(later)
    #expect(!slots.hasRuns && slots.counts == RunningDownloads())
  }

  @Test func theBestRankComesFirstAndFiltersSelect() async throws {
    let fixture = try await RunFixture()
    var slots = Slots()
    for (id, rank) in [("c", 3), ("a", 1), ("b", 2)] as [(DownloadID, Int64)] {
      _ = slots.insert(try fixture.run(id, tags: id == "b" ? [] : ["odd"], rank: rank))
    }
    #expect(slots.ranked.map(\.id) == ["a", "b", "c"])
    #expect(Set(slots.runs(matching: .tag("odd")).map(\.id)) == ["a", "c"])
    #expect(slots.runs(matching: .tag("none")).isEmpty)
    #expect(slots.runs(matching: .all).count == 3)
  }

  // MARK: Descriptors

  @Test func whereDescriptorsAreShortHalfAsManyRun() async throws {
    let fixture = try await RunFixture()
    var slots = Slots()
    let runs = try (0..<9).map { try fixture.run(DownloadID("d\($0)")) }
    for run in runs { _ = slots.insert(run) }
    #expect(slots.hasDescriptors(beside: slots.counts), "there is no shortage")
    slots.free(runs[0])
    slots.ranOutOfDescriptors()
    #expect(slots.ceiling == 4)
    #expect(!slots.hasDescriptors(beside: slots.counts))
    var running = RunningDownloads()
    for _ in 0..<3 { running.insert(Candidate()) }
    #expect(slots.hasDescriptors(beside: running))
    running.insert(Candidate())
    #expect(!slots.hasDescriptors(beside: running))
    slots.succeeded()
    #expect(slots.hasDescriptors(beside: running), "each success permits one more")
  }

  @Test func oneMayAlwaysRun() {
    var slots = Slots()
    slots.ranOutOfDescriptors()
    slots.ranOutOfDescriptors()
    #expect(slots.ceiling == 1)
    #expect(slots.hasDescriptors(beside: RunningDownloads()))
  }

  @Test func aCeilingNeverRisesByAFailureAndGoesInTheEnd() async throws {
    let fixture = try await RunFixture()
    var slots = Slots()
    slots.succeeded()
    #expect(slots.ceiling == nil, "without a shortage there is no limit")
    slots.ranOutOfDescriptors()
    for index in 0..<20 { _ = slots.insert(try fixture.run(DownloadID("d\(index)"))) }
    slots.ranOutOfDescriptors()
    #expect(slots.ceiling == 1)
    for _ in 0..<1 << 16 { slots.succeeded() }
    #expect(slots.ceiling == nil)
  }
}
