import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import CustomStages

/// Tests as a user would write them: one line for the contract of each stage, and a few for its behavior.
@Suite(.endsHangs)
struct CustomStagesTests {
  @Test func dataURLSourceKeepsTheContract() async throws {
    let text = "the first line\nthe second\nthe third\n"
    let url = try #require(URL(string: "data:text/plain;base64," + Data(text.utf8).base64EncodedString()))
    try await SourceConformance(CustomStages.DataURLSource(), url: url, content: Array(text.utf8)).run()
  }

  @Test func smallestFirstKeepsTheContract() async throws {
    try await SchedulingPolicyConformance(SmallestFirst()).run()
    let small = SmallestFirst().rank(RankingContext(id: "a", arrival: 2, size: 1))
    let large = SmallestFirst().rank(RankingContext(id: "b", arrival: 1, size: 100))
    let unknown = SmallestFirst().rank(RankingContext(id: "c", arrival: 0))
    #expect(small < large)
    #expect(large < unknown)
  }

  @Test func quietHoursCloseAndOpenOnTheHour() async throws {
    // Midnight of 1 January 2001.
    let time = VirtualTime(date: Date(timeIntervalSince1970: 978_307_200))
    let gate = QuietHours(from: 22, to: 6, time: time)
    let (rules, continuation) = AsyncStream<GateRule>.makeStream()
    let watch = Task { try await gate.watch { continuation.yield($0) } }
    var iterator = rules.makeAsyncIterator()
    let prefetch = Candidate(intent: .prefetch)
    #expect(await iterator.next()?.verdict(for: prefetch) == .closed("QuietHours: it is between 22:00 and 6:00 UTC"))
    for _ in 0..<6 {
      await time.sleepers(atLeast: 1)
      time.advance(by: .seconds(3600))
    }
    var last: GateRule?
    for _ in 0..<6 { last = await iterator.next() }
    #expect(last?.verdict(for: prefetch) == .open)
    watch.cancel()
    _ = await watch.result
  }

  @Test func userInitiatedDownloadsDoNotWait() async throws {
    let time = VirtualTime(date: Date(timeIntervalSince1970: 978_307_200))
    try await GateConformance(QuietHours(from: 0, to: 23, time: time)).run()
  }

  @Test func countLinesCounts() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let path = try folder.write(Array("a\nb\n".utf8), to: "text")
    let context = ProcessingContext(request: try DownloadRequest("data:,"), workspace: folder.path)
    let output = try await CountLines().process(File(path: path, name: "text"), in: context)
    #expect(output.name == "text.lines")
    #expect(try folder.read("lines") == Array("2\n".utf8))
  }
}
