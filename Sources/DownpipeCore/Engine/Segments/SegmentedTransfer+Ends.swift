internal import Foundation
internal import Synchronization

// What the ends of connections mean for their place and for the transfer.
extension SegmentedTransfer {
  func auditioned(_ place: Int, _ result: Result<Checkpoint, any Error>, _ state: inout State) throws {
    state.auditions -= 1
    state.places[place].open -= 1
    switch result {
    case .success(let reference):
      state.places[place].reference = reference
      state.places.succeeded(place)
    case .failure(let error):
      note(error, of: place, &state)
    }
  }

  /// Decides what the end of a feed means for its place and for the transfer.
  func ended(_ id: SegmentTable.FeedID, _ result: Result<Void, any Error>, _ state: inout State) async throws {
    state.feeds[id] = nil
    giveRoom(of: id, &state)
    let ended = writer.withTable { table in
      defer { table.remove(id) }
      return table.feeds[id]
    }
    guard let ended else { return }
    let place = ended.place
    state.places[place].open -= 1
    let brought = ended.meter.received(until: ended.position)
    if brought > 0 { state.places.succeeded(place) }
    switch result {
    case .success where brought == 0 && !ended.isRevoked:
      note(DownloadError(.lengthMismatch, "the server sent no bytes of the requested range"), of: place, &state)
    case .success, .failure(FeedEnd.done):
      break
    case .failure(FeedEnd.fatal(let error)):
      throw error
    case .failure(FeedEnd.lies(let liar)):
      try await drop(liar, &state)
    case .failure where ended.isRevoked:
      break
    case .failure(let error):
      // A connection that was lost after it had brought much is simply opened again.
      if brought < SegmentTable.smallest { note(error, of: place, &state) } else { noteRefusal(of: place, &state) }
    }
  }

  /// Counts a lost connection for the policy, unless others can take its place elsewhere.
  private func noteRefusal(of place: Int, _ state: inout State) {
    if !state.places.hasOther(than: place, at: run.context.time.now) { state.refusals += 1 }
  }

  /// Notes a failure of a place.
  private func note(_ error: any Error, of place: Int, _ state: inout State) {
    let url = state.places[place].url
    let stage = run.stages.source(for: url)?.stage.name
    let error = DownloadError(error, as: .network, stage: stage).located(
      stage: stage, url: url, attempt: run.read { $0.attempts })
    noteRefusal(of: place, &state)
    if Self.isTransient(error) {
      let isRefusal = error.httpStatus == 429 || error.httpStatus == 503
      state.places.failed(
        place, error, isRefusal: isRefusal, at: run.context.time.now, run.context.time.date)
    } else {
      state.places.exclude(place, error)
      if error.code == .rangeIgnored { run.context.trust.lower(url, to: .none) }
    }
    run.announce(.refused(error))
  }

  /// Whether a place may serve the next request although it has failed to serve this one.
  private static func isTransient(_ error: DownloadError) -> Bool {
    guard error.code == .httpStatus, let status = error.httpStatus else {
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
  private func drop(_ place: Int, _ state: inout State) async throws {
    let url = state.places[place].url
    guard !state.places[place].isOut else { return }
    let error = DownloadError(.contentChanged, "the mirror has another file: what it has sent is fetched again")
      .located(stage: nil, url: url, attempt: run.read { $0.attempts })
    state.places.exclude(place, error)
    let (lost, feeds, bytes) = writer.withTable { table in
      let feeds = table.feeds.filter { $0.value.place == place }.map(\.key)
      return (table.drop(place), feeds, table.written)
    }
    for id in feeds { state.feeds[id]?.cancel() }
    run.announce(.refused(error))
    guard !lost.isEmpty else { return }
    run.received.store(bytes.byteCount, ordering: .relaxed)
    run.update { record in for range in lost.ranges { record.checkpoint.remove(range) } }
    // The ledger must not claim these bytes while they are overwritten.
    try await run.save([.checkpoint])
    transfer.book.reset(to: run.read { $0.checkpoint.ranges })
  }
}
