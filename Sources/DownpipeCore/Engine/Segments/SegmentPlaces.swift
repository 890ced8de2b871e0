internal import Foundation

/// The places of one file, the URL that served it first and its mirrors, with what has been learnt of each.
struct SegmentPlaces: Sendable {
  struct Place: Sendable {
    let url: URL
    /// Whether the server of the file has named it: it gets no credentials.
    var isNamedByServer = false
    /// What its replies must agree with; `nil` for a mirror that has not been shown to serve the same file.
    var reference: Checkpoint?
    /// Bytes per second of one connection, as measured last.
    var speed: Double?
    /// The time from a request to the first byte.
    var setup = Duration.zero
    /// The number of open connections.
    var open = 0
    /// The number of connections that the server permits, after it has refused one, until it is asked again.
    var most = Int.max
    var mostUntil = Duration.zero
    /// The number of failures in a row.
    var failures = 0
    /// The time before which no connection is opened.
    var notBefore = Duration.zero
    /// The time before which the limit of the host is not looked at again.
    var roomAt = Duration.zero
    /// Why the place is not used any more.
    var error: DownloadError?
    /// The last failure.
    var lastFailure: DownloadError?

    var isOut: Bool { error != nil }
    /// Whether it has had no connection yet.
    var isNew: Bool { open == 0 && speed == nil }
  }

  private(set) var places: [Place]

  /// - Parameters:
  ///   - url: The URL that served the first reply.
  ///   - reference: What replies of that URL must agree with.
  init(_ url: URL, reference: Checkpoint) { places = [Place(url: url, reference: reference)] }

  /// The most places of one file.
  static let maximumCount = 16

  /// Adds a mirror, unless it is known.
  mutating func add(_ url: URL, isNamedByServer: Bool = false) {
    guard places.count < Self.maximumCount, !places.contains(where: { $0.url == url }) else { return }
    places.append(Place(url: url, isNamedByServer: isNamedByServer))
  }

  var urls: [URL] { places.map(\.url) }

  subscript(index: Int) -> Place {
    get { places[index] }
    set { places[index] = newValue }
  }

  /// Whether a place may have another connection now.
  private func isUsable(_ place: Place, at now: Duration) -> Bool {
    !place.isOut && place.notBefore <= now && place.roomAt <= now && (place.open < place.most || place.mostUntil <= now)
  }

  /// Whether another place than this one can bring bytes now.
  func hasOther(than index: Int, at now: Duration) -> Bool {
    places.indices.contains { $0 != index && places[$0].reference != nil && isUsable(places[$0], at: now) }
  }

  /// The number of mirrors that have no connection yet.
  var unmeasured: Int { places.dropFirst().count { !$0.isOut && $0.isNew } }

  /// The mirror to compare next.
  func nextToCompare(at now: Duration) -> Int? {
    places.indices.first { places[$0].reference == nil && isUsable(places[$0], at: now) }
  }

  /// The place for the next connection: one that has none, then the one whose connections are fastest.
  func next(at now: Duration) -> Int? {
    let usable = places.indices.filter { isUsable(places[$0], at: now) }
    let proven = usable.filter { places[$0].reference != nil }
    if let new = proven.first(where: { places[$0].isNew }) { return new }
    return proven.max { (places[$0].speed ?? 0, $1) < (places[$1].speed ?? 0, $0) }
  }

  /// Whether a place has a good chance to serve the next connection, now or after a pause.
  func mayServeSoon(at now: Duration, within time: Duration) -> Bool {
    places.contains { !$0.isOut && $0.reference != nil && $0.failures <= 1 && $0.notBefore - now <= time }
  }

  /// Whether a mirror has been compared and could get its first connection.
  func hasUnmeasured(at now: Duration) -> Bool {
    places.contains { $0.reference != nil && $0.isNew && isUsable($0, at: now) }
  }

  /// What a connection to a place is expected to bring.
  func expectation(of index: Int) -> SegmentTable.Expectation {
    SegmentTable.Expectation(speed: places[index].speed, setup: places[index].setup)
  }

  /// What another connection in the stead of one to a place is expected to bring; `nil` if there can be none.
  func alternative(to index: Int, at now: Duration) -> SegmentTable.Expectation? {
    let usable = places.indices.filter { other in
      // The connection that is replaced makes room for another.
      var place = places[other]
      if other == index { place.open -= 1 }
      return place.reference != nil && isUsable(place, at: now)
    }
    guard let best = usable.max(by: { places[$0].speed ?? 0 < places[$1].speed ?? 0 }) else { return nil }
    return expectation(of: best)
  }

  /// Takes over what has been measured of the feeds: the median of each place, which one stalled connection does not
  /// change.
  mutating func learn(from feeds: some Sequence<SegmentTable.Feed>) {
    let feeds = Array(feeds)
    for index in places.indices {
      let mine = feeds.filter { $0.place == index && $0.seamEnd == nil && !$0.isRevoked }
      let speeds = mine.compactMap(\.meter.speed).sorted()
      if !speeds.isEmpty {
        // Those that are left at the end may be the slow ones.
        places[index].speed = max(speeds[speeds.count / 2], (places[index].speed ?? 0) * 0.9)
      }
      if let setup = mine.compactMap(\.meter.setup).max() { places[index].setup = setup }
    }
  }

  // MARK: Failures

  /// How long a place is left alone after its first failure; doubled with each further one.
  private static let pause = Duration.milliseconds(500)
  private static let longestPause = Duration.seconds(8)
  /// How long no further connection is asked of a server that has refused one.
  private static let pauseOfAFullServer = Duration.seconds(5)

  /// Notes that a connection has brought bytes.
  mutating func succeeded(_ index: Int) { places[index].failures = 0 }

  /// Notes that a connection has failed, although the place may serve others later.
  /// - Parameter isRefusal: Whether the server has refused one more connection.
  mutating func failed(_ index: Int, _ error: DownloadError, isRefusal: Bool, at now: Duration, _ date: Date) {
    places[index].lastFailure = error
    places[index].failures += 1
    if isRefusal {
      places[index].most = max(1, places[index].open)
      places[index].mostUntil = now + Self.pauseOfAFullServer
    }
    let wait = min(Self.pause * (1 << min(places[index].failures - 1, 6)), Self.longestPause)
    let asked = error.retryAfter?.delay(from: date) ?? .zero
    places[index].notBefore = now + max(wait, asked)
  }

  /// Opens no connection to a place for some time, because its host has as many as it may have.
  mutating func leaveAlone(_ index: Int, until instant: Duration) { places[index].roomAt = instant }

  /// Stops using a place.
  mutating func exclude(_ index: Int, _ error: DownloadError) { places[index].error = error }

  /// The error to report when no place works: that of the first place.
  var failure: DownloadError? {
    places.lazy.compactMap { $0.error ?? $0.lastFailure }.first
  }
}
