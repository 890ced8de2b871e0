import DownpipeTesting
import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Requests and ranks.
@Suite(.endsHangs)
struct RequestTests {
  @Test func aRequestOfAnEarlierVersionIsRead() throws {
    let text = """
      {"id": "a", "url": "https://example.org/x", "destination": {"name": "n"}, "expectedSize": 7}
      """
    let request = try JSONDecoder().decode(DownloadRequest.self, from: Data(text.utf8))
    #expect(
      request
        == (try DownloadRequest(
          "https://example.org/x", id: "a", destination: .init(name: "n")
        ).with(\.expectedSize, 7))
    )
    let bare = try JSONDecoder().decode(
      DownloadRequest.self, from: Data(#"{"id": "a", "url": "https://example.org/x"}"#.utf8))
    #expect(bare == (try DownloadRequest("https://example.org/x", id: "a")))
  }

  @Test func aRequestComesBackWhole() throws {
    var request = try DownloadRequest(
      "https://example.org/x", id: "a", mirrors: [URL(filePath: "/m")], priority: .high, intent: .silent, tags: ["t"],
      destination: .init(directory: "d", name: "n", nameUse: .fallback)
    ).with(\.deadline, Date(timeIntervalSince1970: 1.5)).with(\.metadata, ["k": "v"]).with(\.expectedSize, 7).with(
      \.sizeHint, 8
    ).with(\.expectedDigests, [FileDigest(.md5, bytes: Array(0..<16))]).with(\.maximumSize, 9).with(
      \.headers, ["A": "b"]
    ).with(\.steps, .only("Gunzip")).with(\.refresh, .whenStale).with(\.headStart, .init(file: "/f", count: 3))
    request.isNamedByServer = true
    request.pieces = PieceDigests(.crc32, length: 5, bytes: [1, 2, 3, 4])
    request.headStart?.proof = .digests
    request.lineage = DownloadRequest.Lineage(following: request)
    let data = try JSONEncoder().encode(request)
    #expect(try JSONDecoder().decode(DownloadRequest.self, from: data) == request)
  }

  @Test("a URL may have 65,536 bytes", arguments: [8_193, 65_536, 65_537])
  func longURLs(_ count: Int) throws {
    let start = "https://example.org/"
    let text = start + String(repeating: "p", count: count - start.utf8.count)
    if count <= DownloadRequest.maximumURLBytes {
      #expect(try DownloadRequest(text).url.absoluteString == text)
    } else {
      #expect(throws: DownloadError.self) { try DownloadRequest(text) }
    }
  }

  @Test func hintsAreNoPromise() throws {
    var request = try DownloadRequest("https://example.org/x").with(\.sizeHint, 8)
    #expect(request.likelySize == 8 && request.expectedSize == .unknown)
    request.expectedSize = 9
    #expect(request.likelySize == 9)
    let record = DownloadRecord(
      request: request, generation: 1, arrival: 1, rank: Rank(), createdAt: Date(timeIntervalSince1970: 0))
    #expect(record.rankingContext.size == 9 && record.rankingContext.host == "example.org")
    var learned = record
    learned.checkpoint.total = 10
    #expect(learned.rankingContext.size == 10, "the server's size replaces the expected one")
  }

  @Test func literalsAreCounts() {
    let count: ByteCount = 5
    #expect(count == .known(5))
    #expect((-1 as ByteCount) == .unknown)
  }

  // MARK: Ranks

  @Test func numbersGoDown() {
    let ranks = [Int64.max, 1000, 1, 0, -1].map { Rank().descending($0) }
    #expect(ranks == ranks.sorted() && ranks[3] == ranks[4])
    #expect(Rank().descending(Priority.high) < Rank().descending(Priority.low))
  }

  @Test func datesGoBothWays() {
    let dates = [-1, 0, 0.001, 1_700_000_000, 1_700_000_000.5, 9e9].map { Date(timeIntervalSince1970: $0) }
    let up = dates.map { Rank().ascending($0) }
    #expect(up == up.sorted() && up[0] == up[1] && Set(up).count == 5)
    let down = dates.map { Rank().descending($0) }
    #expect(down == down.sorted().reversed() && Set(down).count == 5)
    for odd in [Date.distantFuture, .distantPast, Date(timeIntervalSince1970: .infinity)] {
      #expect(Rank().ascending(odd) >= up[0])
    }
    // Priority, date and arrival fit into one rank.
    _ = Rank().descending(Priority.normal).descending(dates[3]).ascending(1)
  }

  @Test func textsGoByTheirBeginning() {
    let texts = ["", "a", "ab", "abcdef", "abcdefg", "b", "é"]
    let ranks = texts.map { Rank().ascending($0) }
    #expect(ranks == ranks.sorted() && ranks[3] == ranks[4] && Set(ranks).count == 6)
    #expect(Rank().ascending("ab", bytes: 1) == Rank().ascending("ac", bytes: 1))
    _ = Rank().descending(Priority.normal).ascending("show").ascending(1)
  }
}
