internal import Foundation
internal import Synchronization

// What the ends of connections mean for their place and for the transfer.
extension SegmentedTransfer {
  /// How often a mirror may fail to answer before it is not asked again.
  private static let mostComparisons = 2

  func comparedMirror(_ place: Int, _ result: Result<Checkpoint, any Error>, _ state: inout State) {
    state.isComparingMirror = false
    if let ticket = state.tickets.removeValue(forKey: Self.comparisonKey) { run.context.connections.close(ticket) }
    switch result {
    case .success(let reference):
      state.places[place].reference = reference
      state.places.succeeded(place)
    case .failure(is CancellationError):
      // A download that began needed the connection.
      state.places.leaveAlone(place, until: run.context.time.now + Self.interval)
    case .failure(let error):
      let failure = note(error, of: place, &state)
      if state.places[place].failures >= Self.mostComparisons { state.places.exclude(place, failure) }
    }
  }

  /// Decides what the end of a feed means for its place and for the transfer.
  func ended(_ id: SegmentTable.FeedID, _ result: Result<Void, any Error>, _ state: inout State) throws {
    state.feeds[id] = nil
    giveRoom(of: id, &state)
    let (feed, isFilled, start) = writer.withTable { table in
      defer { table.remove(id) }
      let feed = table.feeds[id]
      return (feed, table.hasFilled(id), feed.flatMap { table.segments[$0.segment]?.start })
    }
    guard let ended = feed else { return }
    let place = ended.place
    state.places[place].open -= 1
    let brought = ended.wrote
    if brought > 0 { state.places.succeeded(place) }
    switch result {
    case .success where ended.position < start ?? 0 && !ended.isRevoked:
      // Cut short, which says nothing about the server's ranges.
      note(
        DownloadError(.network, "the body ended before all bytes on disk were compared"), of: place, &state)
    case .success where brought == 0 && !ended.isRevoked && !isFilled:
      note(
        DownloadError(.wrongRangeEnd, "the server's range has none of the missing bytes"), of: place, &state)
    case .success where brought < SegmentTable.seam && !ended.isRevoked && !isFilled:
      // Not a reason to stop using the place, but to wait.
      note(DownloadError(.network, "the server sends only \(brought) bytes of a range"), of: place, &state)
    case .success, .failure(FeedEnd.done):
      break
    case .failure(FeedEnd.fatal(let error)):
      // The file has changed, or the server's ranges are wrong: the next attempt depends less on them.
      if error.code == .contentChanged { run.context.trust.lower(state.places[0].url, to: .overlap) }
      throw error
    case .failure(FeedEnd.wrongBytes(let wrong)):
      drop(wrong, &state)
    case .failure where ended.isRevoked:
      break
    case .failure(let error):
      // A connection that was lost after it had brought much is simply opened again.
      if brought < SegmentTable.smallest { return _ = note(error, of: place, &state) }
      state.lastError = described(error, of: place, state)
      noteRefusal(of: place, &state)
    }
  }

  private func described(_ error: any Error, of place: Int, _ state: State) -> DownloadError {
    let url = state.places[place].url
    let stage = run.stages.source(for: url)?.stage.name
    return DownloadError(error, as: .network, stage: stage).located(
      stage: stage, url: url, attempt: run.read { $0.attempts })
  }

  /// Counts a lost connection for the policy, unless others can take its place elsewhere.
  private func noteRefusal(of place: Int, _ state: inout State) {
    if !state.places.hasOther(than: place, at: run.context.time.now) { state.refusals += 1 }
  }

  /// Notes a failure of a place.
  @discardableResult
  private func note(_ error: any Error, of place: Int, _ state: inout State) -> DownloadError {
    let error = described(error, of: place, state)
    // A mirror that has brought nothing says less than the place that has.
    if state.places[place].reference != nil { state.lastError = error }
    noteRefusal(of: place, &state)
    if Self.isTransient(error) {
      let isRefusal = error.httpStatus == 429 || error.httpStatus == 503
      state.places.failed(
        place, error, isRefusal: isRefusal, at: run.context.time.now, run.context.time.date)
    } else {
      state.places.exclude(place, error)
      if error.code == .rangeIgnored { run.context.trust.lower(state.places[place].url, to: .none) }
    }
    run.announce(.refused(error))
    return error
  }

  /// Whether a place may serve the next request although it has failed to serve this one.
  private static func isTransient(_ error: DownloadError) -> Bool {
    guard error.code == .httpStatus || error.code == .rangeRefused, let status = error.httpStatus else {
      return !aboutTheRepresentation.contains(error.code)
    }
    return status == 408 || status == 429 || status >= 500
  }

  private static let aboutTheRepresentation: Set<DownloadError.Code> = [
    .contentChanged, .sizeChanged, .lengthMismatch, .unproven, .wrongRange, .wrongRangeEnd, .rangeIgnored,
    .unreadableRange, .multipartRange, .wrongContentCoding, .rangeNotSatisfiable, .linkExpired, .unsupportedURL,
    .tooLarge,
  ]

  /// Removes what a mirror has brought whose bytes differ from those of an earlier place.
  private func drop(_ place: Int, _ state: inout State) {
    let url = state.places[place].url
    let wasOut = state.places[place].isOut
    let error = DownloadError(.contentChanged, "the mirror has another file: what it has sent is fetched again")
      .located(stage: nil, url: url, attempt: run.read { $0.attempts })
    state.places.exclude(place, error)
    let (lost, feeds, bytes) = writer.withTable { table in
      let feeds = table.feeds.filter { $0.value.place == place }.map(\.key)
      return (table.drop(place), feeds, table.written)
    }
    for id in feeds { state.feeds[id]?.cancel() }
    // Several feeds may notice the same lie, and a place that is not used any more may have lied before.
    if !wasOut || !lost.isEmpty { run.announce(.refused(error)) }
    guard !lost.isEmpty else { return }
    run.written.store(bytes.byteCount, ordering: .relaxed)
    // The ledger must not claim these bytes while they are overwritten.
    writer.requestCheckpoint()
  }
}
