import Foundation
import HangLimit
import Testing

@_spi(Ledger) @testable import DownpipeCore

/// Which place gets the next connection.
@Suite(.endsHangs)
struct SegmentPlacesTests {
  private let reference = Checkpoint(total: .known(1000))

  private func places(_ count: Int, proven: Bool = true) throws -> SegmentPlaces {
    var places = SegmentPlaces(try #require(URL(string: "http://0/")), reference: reference)
    for index in 1..<count {
      places.add(try #require(URL(string: "http://\(index)/")))
      if proven, index < places.places.count { places[index].reference = reference }
    }
    return places
  }

  @Test func aMirrorIsComparedFirstAndOnce() throws {
    var places = try places(2, proven: false)
    #expect(places.unmeasured == 1)
    #expect(places.next(at: .zero) == 0)
    #expect(places.nextToCompare(at: .zero) == 1)
    places[1].reference = reference
    #expect(places.nextToCompare(at: .zero) == nil)
    places[0].open = 1
    #expect(places.next(at: .zero) == 1)
  }

  @Test func everyPlaceIsMeasuredThenTheFastestGetsTheConnections() throws {
    var places = try places(3)
    (places[0].speed, places[0].open) = (100, 1)
    #expect(places.next(at: .zero) == 1)
    (places[1].speed, places[1].open) = (300, 1)
    (places[2].speed, places[2].open) = (200, 1)
    #expect(places.next(at: .zero) == 1)
    places.exclude(1, DownloadError(.contentChanged, "it lies"))
    #expect(places.next(at: .zero) == 2)
  }

  @Test func aPlaceThatFailsIsLeftAloneForAGrowingTime() throws {
    var places = try places(1)
    let error = DownloadError(.network, "lost")
    places.failed(0, error, isRefusal: false, at: .zero, Date(timeIntervalSince1970: 0))
    #expect(places.next(at: .milliseconds(499)) == nil)
    #expect(places.next(at: .milliseconds(500)) == 0)
    places.failed(0, error, isRefusal: false, at: .zero, Date(timeIntervalSince1970: 0))
    #expect(places.next(at: .milliseconds(999)) == nil)
    places.succeeded(0)
    places.failed(0, error, isRefusal: false, at: .zero, Date(timeIntervalSince1970: 0))
    #expect(places.next(at: .seconds(1)) == 0)
    #expect(places.failure?.message == "lost")
  }

  @Test func aFullServerKeepsItsConnectionsAndIsAskedAgainLater() throws {
    var places = try places(1)
    places[0].open = 2
    let error = DownloadError(.httpStatus, "full", httpStatus: 503, retryAfter: .seconds(2))
    places.failed(0, error, isRefusal: true, at: .zero, Date(timeIntervalSince1970: 0))
    #expect(places.next(at: .seconds(3)) == nil)
    places[0].open = 1
    #expect(places.next(at: .seconds(1)) == nil, "Retry-After")
    #expect(places.next(at: .seconds(3)) == 0)
    places[0].open = 2
    #expect(places.next(at: .seconds(6)) == 0)
  }

  @Test func placesAreBoundedAndUnique() throws {
    var places = try places(40)
    #expect(places.places.count == SegmentPlaces.maximumCount)
    places.add(try #require(URL(string: "http://0/")))
    #expect(places.places.count == SegmentPlaces.maximumCount)
  }

  @Test func oneStalledConnectionDoesNotSpoilTheMeasureOfItsPlace() throws {
    var places = try places(1)
    var table = SegmentTable(total: 4_000_000, written: ByteRangeSet())
    for index in 0..<Int64(4) {
      let id = table.add((index * 1_000_000)..<((index + 1) * 1_000_000), from: index * 1_000_000, place: 0, at: .zero)
      table.begin(id, at: .zero)
      _ = table.next(id, count: index == 0 ? 10 : 500_000)
    }
    table.measure(at: .seconds(1))
    places.learn(from: table.feeds.values)
    #expect(places[0].speed == 500_000)
  }
}
