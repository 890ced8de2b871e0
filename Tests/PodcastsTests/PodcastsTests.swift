import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import Podcasts

/// The use cases of a podcast app, tested through the example.
@Suite(.endsHangs)
struct PodcastsTests {
  private let folder: TemporaryFolder
  private let gate = ServerGate()
  private let server: ScriptedHTTPServer

  init() async throws {
    folder = try TemporaryFolder()
    let gate = gate
    server = try await ScriptedHTTPServer.start { request in
      ScriptedReply(200, body: .bytes(Array("sound of \(request.path)".utf8))).held(at: gate)
    }
  }

  /// A feed that lists its newest episode last; a higher number is a newer episode.
  private func feed(_ title: String = "Night: the Show", _ numbers: ClosedRange<Int> = 1...5) throws -> PodcastFeed {
    let items = numbers.map { number in
      """
      {"id": "\(title)-\(number)", "title": "No. \(number)", "date_published": "2026-11-0\(number)T08:00:00Z",
       "attachments": [{"url": "\(server.url("/\(number).mp3"))", "mime_type": "audio/mpeg", "size_in_bytes": 77}]}
      """
    }
    return try PodcastFeed(
      Data(
        #"{"version": "https://jsonfeed.org/version/1.1", "title": "\#(title)", "items": [\#(items.joined(separator: ","))]}"#
          .utf8))
  }

  private func running(_ podcasts: Podcasts) async throws -> Set<String> {
    let statuses = try await podcasts.downloader.statuses(DownloadQuery(phases: [.transferring]))
    return Set(statuses.compactMap { $0.request.metadata["title"] })
  }

  /// Returns once the condition holds; the suite's limit ends the test otherwise.
  private func until(_ condition: () async throws -> Bool) async throws {
    while try await !condition() { await Task.yield() }
  }

  private func end(_ podcasts: Podcasts) async {
    gate.open()
    await podcasts.downloader.shutdown()
    await server.shutdown()
    folder.close()
  }

  @Test func theNewestAreFirstAndARefreshChangesNothing() async throws {
    let podcasts = try await Podcasts(folder.path, network: ManualGate("Network"))
    try await podcasts.refresh(feed())
    await gate.arrivals(2)
    #expect(try await running(podcasts) == ["No. 5", "No. 4"])
    let before = try await podcasts.list()
    try await podcasts.refresh(feed())
    let after = try await podcasts.list()
    // The lines of running episodes may have a speed by now.
    func order(_ lines: [String]) -> [Substring] { lines.map { $0.prefix { $0 != ":" } } }
    #expect(order(after) == order(before), "\(before) became \(after)")
    #expect(after.suffix(3) == before.suffix(3))
    #expect(before.suffix(3) == (1...3).reversed().map { "No. \($0): 2 of 2 downloads are running" })
    await end(podcasts)
  }

  @Test func aTappedEpisodeStartsInPlaceOfTheOldest() async throws {
    let podcasts = try await Podcasts(folder.path, network: ManualGate("Network"))
    try await podcasts.refresh(feed())
    await gate.arrivals(2)
    async let file = podcasts.play("Night: the Show-1")
    await gate.arrivals(3)
    try await until { try await running(podcasts).count == 2 }
    #expect(try await running(podcasts).contains("No. 1"))
    gate.open()
    let url = try #require(try await file)
    #expect(try String(contentsOf: url, encoding: .utf8) == "sound of /1.mp3")
    #expect(url.pathComponents.suffix(2) == ["Night- the Show", "No. 1.mp3"])
    try await podcasts.downloader.waitUntilIdle()
    #expect(try await podcasts.list().allSatisfy { $0.hasSuffix("finished") })
    await end(podcasts)
  }

  @Test func deletingRemovesTheFileAndAnEmptyFolder() async throws {
    gate.open()
    let podcasts = try await Podcasts(folder.path, network: ManualGate("Network"))
    try await podcasts.refresh(feed("One", 1...2))
    try await podcasts.downloader.waitUntilIdle()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/One").count == 2)
    try await podcasts.delete("One-1")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/One") == ["No. 2.mp3"])
    try await podcasts.delete("One-2")
    #expect(!FileManager.default.fileExists(atPath: folder.path + "/One"))
    // A refresh does not add deleted episodes again.
    try await podcasts.refresh(feed("One", 1...2))
    try await podcasts.downloader.waitUntilIdle()
    #expect(try await podcasts.list().allSatisfy { $0.hasSuffix(": cancelled") })
    #expect(!FileManager.default.fileExists(atPath: folder.path + "/One"))
    await end(podcasts)
  }

  #if SQLite
    @Test func theListSurvivesARestartWithTheReasonsToWait() async throws {
      let network = ManualGate("Network")
      var podcasts = try await Podcasts(folder.path, network: network)
      try await podcasts.refresh(feed())
      await gate.arrivals(2)
      network.close("there is none")
      try await podcasts.downloader.pause("Night: the Show-3")
      try await podcasts.downloader.cancel("Night: the Show-2")
      await podcasts.downloader.shutdown()
      podcasts = try await Podcasts(folder.path, network: network)
      try await podcasts.refresh(feed())
      let expected: Set = [
        "No. 5: Network: there is none", "No. 4: Network: there is none", "No. 3: paused", "No. 2: cancelled",
        "No. 1: Network: there is none",
      ]
      // The gate reports a moment after the downloader has started.
      try await until { [podcasts] in try await Set(podcasts.list(show: "Night- the Show")) == expected }
      #expect(try await podcasts.list(show: "Another").isEmpty)
      await end(podcasts)
    }
  #endif
}
