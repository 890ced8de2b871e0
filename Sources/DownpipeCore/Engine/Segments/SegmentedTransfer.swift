internal import Foundation
internal import Synchronization

/// Fetches the missing bytes of one file over several connections, from one or more places.
///
/// The body of the first reply flows from the beginning. The conductor, the loop in ``perform(_:filling:from:_:)``, opens
/// further connections as the ``SegmentSession`` decides, and replaces those that are much slower than the others. It is
/// the only one that opens and ends feeds; feeds write by themselves.
struct SegmentedTransfer: Sendable {
  let transfer: Transfer
  let partial: any Partial
  let writer: SegmentWriter
  let session: any SegmentSession

  var run: Run { transfer.run }
  private var time: any TimeSource { run.context.time }

  /// How often connections are measured.
  static let interval = Duration.milliseconds(250)

  enum Event: Sendable {
    /// Time to measure.
    case tick
    /// The writer has something new.
    case writerHasNews
    case ended(SegmentTable.FeedID, Result<Void, any Error>)
    /// A mirror was asked for bytes that are on disk. The result is what its replies must agree with.
    case comparedMirror(place: Int, Result<Checkpoint, any Error>)
  }

  typealias Group = ThrowingTaskGroup<Event, any Error>

  /// What the conductor knows.
  struct State {
    var places: SegmentPlaces
    var feeds: [SegmentTable.FeedID: FeedTask] = [:]
    /// Whether a mirror is being asked for bytes that are on disk.
    var isComparingMirror = false
    /// Until when mirrors that have not been compared have a connection reserved.
    let reservedUntil: Duration
    /// The number of connections wanted.
    var target: Int
    /// The connections that count against the limit of a host, by feed.
    var tickets = OrderedTable<SegmentTable.FeedID, HostConnections.Ticket>()
    /// The feed that has the place with which the download began.
    var feedAtFirstPlace: SegmentTable.FeedID?
    var refusals = 0
    var replacements = 0
    var measuredAt: Duration
    var measuredBytes: Int64
    /// The number of measurements since the file was complete.
    var ticksAtEnd = 0
    /// The last failure of a connection.
    var lastError: DownloadError?
    /// Since when nothing has been open, although the transfer may go on soon.
    var idleSince: Duration?

    var open: Int { feeds.count }
  }

  /// The key under which the ticket of a comparison is kept.
  static let comparisonKey = 0
  /// How long connections are reserved for mirrors. One that does not answer holds up nothing.
  private static let reservation = Duration.seconds(1)

  /// Fetches all missing bytes.
  ///
  /// - Parameters:
  ///   - first: The first reply, whose body has not been read.
  ///   - range: The missing bytes with which it continues.
  ///   - start: The offset of the first byte of the body.
  ///   - places: The places of the file, of which the first has sent the reply.
  /// - Throws: The error that ended the last connection when no place works any more; `CancellationError`.
  func perform(_ first: Body, filling range: ByteRange, from start: Int64, _ places: SegmentPlaces) async throws {
    let now = time.now
    let bytes = writer.withTable { $0.writtenCount }
    var state = State(
      places: places, reservedUntil: now + Self.reservation,
      target: session.connections(after: SegmentMeasurement(bytesLeft: bytesLeft, time: now)),
      measuredAt: now, measuredBytes: bytes)
    defer { for ticket in state.tickets.values { run.context.connections.close(ticket) } }
    try await withThrowingTaskGroup(of: Event.self) { group in
      defer { group.cancelAll() }
      let id = writer.withTable { table in
        let id = table.add(range, from: start, place: 0, at: now)
        table.begin(id, at: now)
        return id
      }
      state.feedAtFirstPlace = id
      launch(id, of: 0, FeedTask(run.context.executors), in: &state, &group) {
        try await first.forEachChunk { try writer.take($0, of: id) }
      }
      group.addTask { await tick() }
      group.addTask { await waitForNews() }
      openMore(&state, &group)
      run.connections.store(state.open, ordering: .relaxed)
      while let event = try await group.next() {
        try Task.checkCancellation()
        switch event {
        case .writerHasNews: group.addTask { await waitForNews() }
        case .tick:
          group.addTask { await tick() }
          measure(&state)
        case .ended(let id, let result): try ended(id, result, &state)
        case .comparedMirror(let place, let result): comparedMirror(place, result, &state)
        }
        if isOver(&state) { return }
        openMore(&state, &group)
        run.connections.store(state.open, ordering: .relaxed)
        if isStuck(&state) { throw failure(state) }
      }
    }
  }

  /// The longest time without an open connection: pauses after failures of places are shorter.
  private static let longestIdleTime = Duration.seconds(10)

  /// Whether nothing is open and nothing is on its way. Called after ``openMore(_:_:)``, at least with each tick: so the
  /// transfer asks again or fails, also if no connection was opened for a reason that is not known here.
  private func isStuck(_ state: inout State) -> Bool {
    guard state.open == 0, !state.isComparingMirror else {
      state.idleSince = nil
      return false
    }
    // Nothing else is fetched before the first body has been compared, and that body has ended.
    guard writer.isProven else { return true }
    let now = time.now
    let since = state.idleSince ?? now
    state.idleSince = since
    return now - since >= Self.longestIdleTime
      || !state.places.mayServeSoon(at: now, within: Self.longestIdleTime - (now - since))
  }

  /// Whether rate policies may slow down the feeds: their speeds say nothing about servers then.
  var isPaced: Bool {
    let rates = run.context.rates
    return rates.isLimited && rates.limit(run.read { $0.transferContext })
  }

  var bytesLeft: Int64 { writer.withTable { $0.total - $0.writtenCount } }

  private func tick() async -> Event {
    try? await time.sleep(for: Self.interval, purpose: .segments)
    return .tick
  }

  private func waitForNews() async -> Event {
    for await _ in writer.news { break }
    return .writerHasNews
  }

  /// How many intervals a connection may take to compare a seam when the file is complete.
  private static let patience = 4

  /// Whether all bytes are on disk, and have been compared where those of two feeds meet. Bytes that no feed is about to
  /// compare are fetched again.
  private func isOver(_ state: inout State) -> Bool {
    let (isOver, useless, hasReopened) = writer.withTable { table -> (Bool, [SegmentTable.FeedID], Bool) in
      guard table.isComplete else { return (false, [], false) }
      let isLate = state.ticksAtEnd > Self.patience
      let useless = table.feeds.keys.filter { isLate || !table.isComparing($0) }
      for id in useless { table.revoke(id) }
      table.reopenSeams()
      return (table.isComplete && table.seams.isEmpty, useless, !table.isComplete)
    }
    // The ledger must not claim these bytes while they are overwritten.
    if hasReopened { writer.requestCheckpoint() }
    if !isOver {
      for id in useless { state.feeds[id]?.cancel() }
      if !useless.isEmpty { state.ticksAtEnd = 0 }
    }
    return isOver
  }

  private func failure(_ state: State) -> DownloadError {
    state.lastError ?? state.places.failure
      ?? DownloadError(.lengthMismatch, "the servers send no more bytes, and \(bytesLeft) are missing")
  }

  // MARK: Measuring

  private func measure(_ state: inout State) {
    let now = time.now
    let (count, left) = writer.withTable { table in
      table.measure(at: now)
      state.places.learn(from: table.feeds.values)
      return (table.writtenCount, table.total - table.writtenCount)
    }
    if left == 0 { state.ticksAtEnd += 1 }
    guard now > state.measuredAt, writer.isProven else { return }
    let speed = Double(count - state.measuredBytes) / ((now - state.measuredAt) / .seconds(1))
    (state.measuredAt, state.measuredBytes) = (now, count)
    let wanted = session.connections(
      after: SegmentMeasurement(
        connections: state.open, bytesPerSecond: max(0, speed), bytesLeft: left, refusals: state.refusals, time: now))
    state.refusals = 0
    state.target = wanted
    endSurplus(&state)
    if !isPaced { replaceSlow(&state, at: now) }
    giveWay(to: &state, at: now)
  }

  /// Ends the connections that are not wanted any more, the slowest first, and those that have nothing to do.
  private func endSurplus(_ state: inout State) {
    let (slowest, revoked) = writer.withTable { ($0.slowest, $0.feeds.filter(\.value.isRevoked).map(\.key)) }
    for id in slowest.prefix(max(0, slowest.count - state.target)) { end(id, state) }
    // A neighbour has taken their bytes, while they wait for their server.
    for id in revoked { state.feeds[id]?.cancel() }
  }

  /// Ends the slowest connection when a mirror that has been compared late has none, so that its speed becomes known.
  private func giveWay(to state: inout State, at now: Duration) {
    guard state.open >= state.target, state.target > 1, state.places.hasUnmeasured(at: now) else { return }
    if let slowest = writer.withTable({ $0.slowest.first }) { end(slowest, state) }
  }

  /// The most connections that are replaced in one interval, and for each wanted connection in all.
  private static let replacementsAtOnce = 2
  private static let replacementsEach = 8

  /// Ends the connections that are much slower than others would be. Their bytes go to new ones.
  private func replaceSlow(_ state: inout State, at now: Duration) {
    for _ in 0..<Self.replacementsAtOnce where state.replacements < Self.replacementsEach * session.maximumConnections {
      let places = state.places
      let slow = writer.withTable { $0.feedToReplace { places.alternative(to: $0, at: now) } }
      guard let slow else { return }
      state.replacements += 1
      end(slow, state)
    }
  }

  private func end(_ id: SegmentTable.FeedID, _ state: State) {
    writer.withTable { $0.revoke(id) }
    state.feeds[id]?.cancel()
  }
}
