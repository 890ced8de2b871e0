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

  @Test func oneLargeFileKeepsTheContract() async throws {
    try await AdmissionPolicyConformance(OneLargeFile()).run()
    try await AdmissionPolicyConformance(OneLargeFile(large: 1)).run()
  }

  @Test(
    "a large file starts while the running downloads together are below its limit; others start at any time",
    arguments: [
      ([], 100, true), ([], 5000, true), ([99], 100, true), ([99, nil, nil], 100, true), ([nil], 100, true),
      ([100], 100, false), ([5000], 100, false), ([60, 60], 100, false), ([60, 40], 5000, false),
      ([5000], 99, true), ([60, 60], 99, true), ([5000], nil, true),
    ] as [([Int64?], Int64?, Bool)])
  func oneLargeFileAdmits(_ sizes: [Int64?], _ size: Int64?, _ isAdmitted: Bool) {
    func candidate(_ size: Int64?) -> Candidate { Candidate(size: size.map(ByteCount.known) ?? .unknown) }
    var running = RunningDownloads()
    for size in sizes { running.insert(candidate(size)) }
    let admission = OneLargeFile(large: 100).admit(candidate(size), beside: running)
    let refused = Admission.refused(
      "the running downloads have \(running.bytes) bytes: a large file starts below 100")
    #expect(admission == (isAdmitted ? .admitted : refused))
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

  @Test func writeSummaryMakesACompanion() async throws {
    let folder = try TemporaryFolder()
    defer { folder.close() }
    let downloader = try await Downloader {
      CustomStages.DataURLSource()
      FileStore(folder.path("store"))
      WriteSummary()
    }
    let request = try DownloadRequest("data:text/plain,first%0Asecond%0A", id: "a", destination: .init(name: "text"))
    let artifact = try await downloader.add(request).value
    #expect(artifact.companions.map { $0.path } == [folder.path("store/text.summary.txt")])
    #expect(try folder.read("store/text") == Array("first\nsecond\n".utf8))
    #expect(try folder.read("store/text.summary.txt") == Array("2 lines\nfirst\n".utf8))
    try await downloader.removeAll(ids: ["a"], deletingFiles: true)
    #expect(try folder.contents().allSatisfy { $0 == "store" || $0.hasPrefix("store/.downpipe") })
    await downloader.shutdown()
  }
}
