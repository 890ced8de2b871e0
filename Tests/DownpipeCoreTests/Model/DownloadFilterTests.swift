@_spi(Ledger) import DownpipeCore
import Foundation
import Testing

@Suite struct DownloadFilterTests {
  private func record(
    _ phase: DownloadState.Phase = .waiting, url: String = "https://Example.org:8080/a",
    tags: Set<String> = ["x", "y"],
    intent: Intent = .silent
  ) throws -> DownloadRecord {
    var record = DownloadRecord(
      request: try DownloadRequest(url, id: "a", intent: intent, tags: tags), generation: 1, arrival: 1, rank: Rank(),
      createdAt: Date(timeIntervalSince1970: 0))
    record.phase = phase
    return record
  }

  @Test("A record matches if it meets every condition")
  func conditions() throws {
    let record = try record(.paused)
    let matching: [DownloadFilter] = [
      .all, DownloadFilter(), .phases([.paused, .failed]), .tag("x"), .host("example.org:8080"), .intent(.silent),
      .ids(["a", "b"]), DownloadFilter(phases: [.paused], ids: ["a"]),
      DownloadFilter(phases: [.paused], tag: "y", host: "example.org:8080", intent: .silent),
    ]
    for filter in matching { #expect(filter.matches(record), "\(filter)") }
    let others: [DownloadFilter] = [
      .ids([]), .ids(["b"]), DownloadFilter(phases: [.waiting], ids: ["a"]), .phases([]), .phases([.waiting]),
      .tag("z"), .host("example.org"), .host(""), .intent(.prefetch),
      DownloadFilter(phases: [.waiting], tag: "y", host: "example.org:8080", intent: .silent),
      DownloadFilter(phases: [.paused], tag: "z", host: "example.org:8080", intent: .silent),
      DownloadFilter(phases: [.paused], tag: "y", host: "example.org", intent: .silent),
      DownloadFilter(phases: [.paused], tag: "y", host: "example.org:8080", intent: .userInitiated),
    ]
    for filter in others { #expect(!filter.matches(record), "\(filter)") }
  }

  @Test("A host is compared in lower case, however it is given")
  func hosts() throws {
    let record = try record()
    #expect(DownloadFilter.host("EXAMPLE.org:8080").matches(record))
    #expect(DownloadFilter(host: "EXAMPLE.org:8080") == .host("example.org:8080"))
    var filter = DownloadFilter.all
    filter.host = "Example.ORG:8080"
    #expect(filter.matches(record) && filter.host == "example.org:8080")
    #expect(DownloadFilter.host("").matches(try self.record(url: "file:///a")))
  }

  @Test func aQueryHasAFilter() {
    let filter = DownloadFilter(phases: [.failed], tag: "x", host: "a.example", intent: .silent)
    let query = DownloadQuery(filter, location: "L", order: .rank, limit: 3, offset: 2)
    #expect(
      query
        == DownloadQuery(
          phases: [.failed], tag: "x", host: "A.example", intent: .silent, location: "L", order: .rank, limit: 3,
          offset: 2))
    #expect(DownloadQuery() == DownloadQuery(.all))
  }
}
