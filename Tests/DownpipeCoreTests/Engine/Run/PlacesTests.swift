import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// The places of a download: which is asked, and which is next.
@Suite(.endsHangs)
struct PlacesTests {
  private let urls = ["https://a.example/f", "https://b.example/f", "https://c.example/f"].compactMap(URL.init)

  private func places(excluding excluded: [Int] = [], _ change: (inout Places.Experience) -> Void = { _ in }) -> Places
  {
    var experience = Places.Experience()
    change(&experience)
    let request = DownloadRequest(urls[0], id: "f", mirrors: Array(urls[1...]))
    return Places(request, excluded: excluded.map { urls[$0] }, experience)
  }

  @Test func theURLOfTheRequestIsFirstAndMirrorsFollowInOrder() {
    let places = places()
    #expect(places.urls == urls && places.current == 0 && places.first == 0 && places.firstOfAll == 0)
    #expect(places.next(after: 0) == 1 && places.next(after: 1) == 2 && places.next(after: 2) == nil)
  }

  @Test func excludedPlacesAreSkipped() {
    let places = places(excluding: [0, 1])
    #expect(places.first == 2 && places.firstOfAll == 2 && places.next(after: 0) == 2 && places.next(after: 2) == nil)
    #expect(places.hasOther(than: urls[0]) && !places.hasOther(than: urls[2]))
  }

  @Test func whenAllAreExcludedTheOneInUseIsAskedAgain() {
    let places = places(excluding: [0, 1, 2]) { $0.current = 1 }
    #expect(places.first == 1 && places.firstOfAll == 0 && places.next(after: 0) == nil)
    #expect(!places.hasOther(than: urls[1]))
  }

  @Test func anEarlierPlaceIsAskedWhenNoLaterOneIsLeft() {
    #expect(places(excluding: [2]) { $0.current = 2 }.first == 0)
    #expect(places(excluding: [2]).next(insteadOf: urls[2]) == 0)
    #expect(places(excluding: [0]).next(insteadOf: urls[0]) == 1)
    #expect(places(excluding: [0]).next(insteadOf: urls[2]) == 1)
  }

  @Test func aPlaceThatTheRequestNoLongerHasIsTheLastOne() {
    #expect(places { $0.current = 7 }.current == 2)
    #expect(places { $0.current = 7 }.currentURL == urls[2])
  }

  @Test("wrong pieces come from a place that has not sent them, at last from one that has, and never twice")
  func pieces() {
    var asked: [Int] = []
    while let next = places(
      excluding: [],
      {
        $0.senders = [urls[0]]; $0.askedForPieces = asked.map { urls[$0] }
      }
    )
    .nextForPieces { asked.append(next) }
    #expect(asked == [1, 2, 0])
    #expect(places(excluding: [0, 1, 2]).nextForPieces == nil)
  }

  @Test func aPlaceThatSendsNoRangesMaySendTheWholeFile() {
    #expect(places().nextForWhole == nil)
    #expect(places { $0.wholeOnly = [urls[2], urls[1]] }.nextForWhole == 1)
  }

  @Test("parts come from the mirrors behind the place in use, and from duplicates, unless they are excluded")
  func segments() {
    let other = urls[0].appending(path: "x")
    let beside = places(excluding: [2]) { $0.current = 0 }.beside(duplicates: [other, urls[2]])
    #expect(beside.map(\.url) == [urls[1], other] && beside.map(\.isNamedByServer) == [false, true])
    #expect(places { $0.current = 1 }.beside(duplicates: []).map(\.url) == [urls[2]])
  }

  @Test("which places have brought the bytes on disk is kept for the next run, and for no later bytes")
  func originsOfTheRunBefore() async throws {
    let (memory, fixture) = (PlaceMemory(), try await RunFixture())
    let url = try #require(URL(string: "https://mirror.example/a"))
    var origins = ByteOrigins()
    origins.note(ByteRangeSet(0..<100), from: url)
    var record = try fixture.record("a")
    memory.keep(origins, of: record, fetched: 100)
    record.bytesFetched = 100
    #expect(memory.takeOrigins(of: record)?.origins(of: ByteRangeSet(0..<50)).known.map(\.place) == [url])
    #expect(memory.takeOrigins(of: record) == nil, "only once")
    memory.keep(origins, of: record, fetched: 100)
    record.bytesFetched = 150
    #expect(memory.takeOrigins(of: record) == nil, "more was fetched since")
    record.bytesFetched = 100
    #expect(memory.takeOrigins(of: record) == nil)
  }
}
