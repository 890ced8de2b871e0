internal import Foundation
internal import Synchronization

// Opening connections, and what their ends mean.
extension SegmentedTransfer {
  /// Opens connections until there are as many as wanted, as long as there is something for them to do.
  func openMore(_ state: inout State, _ group: inout Group) {
    guard writer.isProven else { return }
    let now = run.context.time.now
    let canCompare = writer.canCompare
    // Mirrors can be compared in a moment: they get a connection each.
    let reserved = canCompare ? 0 : min(state.places.untried, state.target - 1)
    while state.open + reserved < state.target, let place = state.places.next(at: now, canCompare: canCompare) {
      guard hasRoom(at: place, state) else {
        state.places.leaveAlone(place, until: now + Self.interval)
        continue
      }
      guard let reference = state.places[place].reference else {
        audition(place, &state, &group)
        continue
      }
      let idle = state.target - state.open
      let expected = state.places.expectation(of: place)
      let work = writer.withTable { table -> (id: SegmentTable.FeedID, request: RequestedRange, at: Int64)? in
        if let range = table.share(for: idle, expected) {
          let request = table.request(for: range)
          return (table.add(range, from: request.start, place: place, at: now), request, range.lowerBound)
        }
        if table.isComplete {
          // The connections that should have passed a seam have ended there, or have stalled.
          guard state.feeds.isEmpty || state.ticksAtEnd > 1, let seam = table.seamToCompare else { return nil }
          let range = max(0, seam - SegmentTable.seam)..<min(seam + SegmentTable.seam, table.total)
          let id = table.addComparison(of: seam, place: place, at: now)
          return (id, RequestedRange(from: range.lowerBound, to: range.upperBound), seam)
        }
        guard let segment = table.segmentToDouble(expected), let start = table.segments[segment]?.claimed,
          let id = table.double(segment, place: place, at: now)
        else { return nil }
        return (id, RequestedRange(from: start), start)
      }
      guard let (id, request, offset) = work else { return }
      let url = state.places[place].url
      let task = FeedTask()
      guard takeRoom(for: id, task, at: place, &state) else {
        writer.withTable { $0.remove(id) }
        return
      }
      launch(id, of: place, task, in: &state, &group) {
        let body = try await open(request, of: url, reference, at: offset)
        writer.withTable { $0.begin(id, at: run.context.time.now) }
        try await body.forEachChunk { try writer.take($0, of: id) }
      }
    }
  }

  func launch(
    _ id: SegmentTable.FeedID, of place: Int, _ task: FeedTask, in state: inout State, _ group: inout Group,
    _ work: @escaping @Sendable () async throws -> Void
  ) {
    state.feeds[id] = task
    state.places[place].open += 1
    group.addTask {
      do {
        try await task.run(work)
        return .ended(id, .success(()))
      } catch { return .ended(id, .failure(error)) }
    }
  }

  // MARK: Limits per host

  /// Whether the limit of a place's host permits one more connection.
  private func hasRoom(at place: Int, _ state: State) -> Bool {
    guard let limit = transfer.hostLimit else { return true }
    let host = state.places[place].url.hostKey
    if state.feedAtFirstPlace == nil, host == state.places[0].url.hostKey { return true }
    return run.context.connections.hasRoom(host, limit: limit)
  }

  private func takeRoom(for id: SegmentTable.FeedID, _ task: FeedTask, at place: Int, _ state: inout State) -> Bool {
    guard let limit = transfer.hostLimit else { return true }
    let host = state.places[place].url.hostKey
    if state.feedAtFirstPlace == nil, host == state.places[0].url.hostKey {
      state.feedAtFirstPlace = id
      return true
    }
    state.tickets[id] = run.context.connections.add(host, limit: limit) { [writer] in
      writer.withTable { $0.revoke(id) }
      task.cancel()
    }
    return state.tickets[id] != nil
  }

  private func giveRoom(of id: SegmentTable.FeedID, _ state: inout State) {
    if state.feedAtFirstPlace == id { state.feedAtFirstPlace = nil }
    if let ticket = state.tickets.removeValue(forKey: id) { run.context.connections.close(ticket) }
  }

  // MARK: Requests

  /// Requests a range of the file.
  ///
  /// - Parameters:
  ///   - reference: The representation that the reply has to be a part of.
  ///   - offset: The offset of the first missing byte; the range may begin before it.
  /// - Returns: The body of a reply that ``ResumePlan`` accepts.
  private func open(
    _ range: RequestedRange, of url: URL, _ reference: Checkpoint, at offset: Int64
  ) async throws -> Body {
    var checkpoint = reference
    checkpoint.ranges = offset > 0 ? ByteRangeSet(0..<offset) : ByteRangeSet()
    let (ask, reply) = try await transfer.request(range, reference.validator, of: url)
    let isStrong = reference.validator?.isStrong == true
    let plan = ResumePlan.decide(
      // A mirror without a strong validator has shown the bytes on disk, and the seams are compared.
      checkpoint: checkpoint, request: ask, reply: reply, validation: isStrong ? .strict : .digest, hasDigest: true)
    do {
      switch plan {
      case .append(at: offset, _) where reply.coverage != .whole:
        guard isStrong || (reply.finalURL ?? url).resourceKey == reference.resource else {
          throw DownloadError(.unproven, "another server answered, which has not shown that it has the same file")
        }
        return reply.body
      case .reject(let error), .restart(because: let error?): throw error
      case .append, .restart, .alreadyComplete:
        throw DownloadError(.rangeIgnored, "the server sent the whole file instead of a part")
      }
    } catch {
      reply.body.discard()
      throw error
    }
  }

  /// Asks a mirror for bytes that are on disk. Only a mirror that has the same ones may bring others.
  private func audition(_ place: Int, _ state: inout State, _ group: inout Group) {
    state.auditions += 1
    state.places[place].open += 1
    let url = state.places[place].url
    group.addTask {
      do { return .auditioned(place: place, .success(try await compare(url))) } catch {
        return .auditioned(place: place, .failure(error))
      }
    }
  }

  private func compare(_ url: URL) async throws -> Checkpoint {
    let (end, total) = writer.withTable { ($0.front, $0.total) }
    let start = max(0, end - SegmentTable.seam)
    let (ask, reply) = try await transfer.request(RequestedRange(from: start, to: end), nil, of: url)
    let known = Checkpoint(ranges: ByteRangeSet(0..<end), total: .known(total))
    let plan = ResumePlan.decide(checkpoint: known, request: ask, reply: reply)
    do {
      guard case .append = plan, case .range(_, .known(total)) = reply.coverage else {
        if case .reject(let error) = plan { throw error }
        throw DownloadError(.unproven, "the mirror did not send the requested part of a file of \(total) bytes")
      }
      let cursor = Cursor(start)
      try await reply.body.forEachChunk { chunk in
        let onDisk = try partial.read(at: cursor.advance(chunk.byteCount), count: chunk.byteCount)
        guard chunk.withUnsafeBytes({ $0.elementsEqual(onDisk) }) else {
          throw DownloadError(.contentChanged, "the mirror has another file: its bytes differ from those on disk")
        }
        run.fetched.wrappingAdd(Int64(chunk.byteCount), ordering: .relaxed)
      }
      guard cursor.position == end else {
        throw DownloadError(.lengthMismatch, "the body ended after \(cursor.position) of \(end) bytes")
      }
    } catch {
      reply.body.discard()
      throw error
    }
    return Checkpoint(
      total: .known(total), validator: reply.validator, resource: (reply.finalURL ?? url).resourceKey)
  }

  // MARK: Ends

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

/// A position that a sink moves.
private final class Cursor: Sendable {
  private let atomic: Atomic<Int64>

  init(_ position: Int64) { atomic = Atomic(position) }

  var position: Int64 { atomic.load(ordering: .relaxed) }

  /// Moves on, and returns the position before.
  func advance(_ count: Int) -> Int64 { atomic.wrappingAdd(Int64(count), ordering: .relaxed).oldValue }
}
