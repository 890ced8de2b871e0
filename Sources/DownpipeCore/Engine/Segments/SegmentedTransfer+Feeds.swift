internal import Foundation
internal import Synchronization

// Opening connections.
extension SegmentedTransfer {
  /// Opens connections until there are as many as wanted, as long as there is something for them to do.
  func openMore(_ state: inout State, _ group: inout Group) {
    guard writer.isProven else { return }
    let now = run.context.time.now
    if writer.canCompare { compareMirror(&state, &group, at: now) }
    // Mirrors that can be compared in a moment get a connection each.
    let reserved = now < state.reservedUntil ? min(state.places.unmeasured, state.target - 1) : 0
    while let place = state.places.next(at: now),
      state.open < state.target - (state.places[place].isNew ? 0 : reserved)
    {
      guard hasRoom(at: place, state) else {
        state.places.leaveAlone(place, until: now + Self.interval)
        continue
      }
      guard let reference = state.places[place].reference else { return }
      let idle = state.target - state.open
      let expected = state.places.expectation(of: place)
      // Policies are not asked under the lock of the table, which transports wait for.
      let isPaced = isPaced
      let work = writer.withTable { table -> (id: SegmentTable.FeedID, request: RequestedRange, at: Int64)? in
        if let range = table.share(for: idle, expected) {
          let request = table.request(for: range, isPaced: isPaced)
          return (table.add(range, from: request.start, place: place, at: now), request, range.lowerBound)
        }
        guard !isPaced, let segment = table.segmentToDouble(expected), let offset = table.segments[segment]?.claimed,
          let id = table.double(segment, place: place, at: now), let start = table.feeds[id]?.position
        else { return nil }
        return (id, RequestedRange(from: start), offset)
      }
      guard let (id, request, offset) = work,
        start(id, request, reference, at: offset, of: place, &state, &group)
      else { return }
    }
  }

  /// Opens a connection for a feed.
  /// - Returns: `false` when the limit of the host does not permit it.
  private func start(
    _ id: SegmentTable.FeedID, _ request: RequestedRange, _ reference: Checkpoint, at offset: Int64, of place: Int,
    _ state: inout State, _ group: inout Group
  ) -> Bool {
    let source = state.places[place]
    let task = FeedTask(run.context.executors)
    guard takeRoom(for: id, task, at: place, &state) else {
      writer.withTable { $0.remove(id) }
      return false
    }
    launch(id, of: place, task, in: &state, &group) {
      let body = try await open(request, of: source, reference, at: offset)
      writer.withTable { $0.begin(id, at: run.context.time.now) }
      try await body.forEachChunk { try writer.take($0, of: id) }
    }
    return true
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
    guard transfer.hasSegments else { return true }
    let host = state.places[place].url.hostKey
    if state.feedAtFirstPlace == nil, host == state.places[0].url.hostKey { return true }
    return run.context.connections.hasRoom(host)
  }

  private func takeRoom(for id: SegmentTable.FeedID, _ task: FeedTask, at place: Int, _ state: inout State) -> Bool {
    guard transfer.hasSegments else { return true }
    let host = state.places[place].url.hostKey
    if state.feedAtFirstPlace == nil, host == state.places[0].url.hostKey {
      state.feedAtFirstPlace = id
      return true
    }
    state.tickets[id] = run.context.connections.add(host) { [writer] in
      writer.withTable { $0.revoke(id) }
      task.cancel()
    }
    return state.tickets[id] != nil
  }

  func giveRoom(of id: SegmentTable.FeedID, _ state: inout State) {
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
    _ range: RequestedRange, of place: SegmentPlaces.Place, _ reference: Checkpoint, at offset: Int64
  ) async throws -> Body {
    var checkpoint = reference
    checkpoint.ranges = offset > 0 ? ByteRangeSet(0..<offset) : ByteRangeSet()
    let (ask, reply) = try await transfer.request(range, reference.validator, of: place)
    let isStrong = reference.validator?.isStrong == true
    let plan = ResumePlan.decide(
      // A mirror without a strong validator has shown the bytes on disk, and the seams are compared.
      checkpoint: checkpoint, request: ask, reply: reply, validation: isStrong ? .strict : .digest, hasDigest: true)
    run.context.options.probe?.note(.planned(run.id, plan))
    do {
      switch plan {
      case .append(at: offset, _) where reply.coverage != .whole:
        guard isStrong || (reply.finalURL ?? place.url).resourceKey == reference.resource else {
          throw DownloadError(.unproven, "another server answered, which has not shown that it has the same file")
        }
        return reply.body
      case .reject(let error), .replace(because: let error): throw error
      case .append, .begin, .alreadyComplete:
        throw DownloadError(.rangeIgnored, "the server sent the whole file instead of a part")
      }
    } catch {
      reply.body.discard()
      throw error
    }
  }

  /// Asks a mirror for bytes that are on disk, one mirror at a time. Only one that has the same ones may bring others.
  private func compareMirror(_ state: inout State, _ group: inout Group, at now: Duration) {
    guard !state.isComparingMirror, let place = state.places.nextToCompare(at: now) else { return }
    let source = state.places[place]
    let task = FeedTask(run.context.executors)
    if transfer.hasSegments {
      guard let ticket = run.context.connections.add(source.url.hostKey, end: { task.cancel() }) else {
        return state.places.leaveAlone(place, until: now + Self.interval)
      }
      state.tickets[Self.comparisonKey] = ticket
    }
    state.isComparingMirror = true
    group.addTask {
      do {
        return .comparedMirror(place: place, .success(try await task.run { try await compare(source) }))
      } catch { return .comparedMirror(place: place, .failure(error)) }
    }
  }

  private func compare(_ place: SegmentPlaces.Place) async throws -> Checkpoint {
    let (range, total) = writer.withTable { table in
      // Bytes of the first place, if there are any: another mirror may be wrong.
      let last = max(0, table.front - SegmentTable.seam)..<table.front
      return (table.isOfFirstPlace(last) ? last : 0..<min(table.front, SegmentTable.seam), table.total)
    }
    let (start, end) = (range.lowerBound, range.upperBound)
    let (ask, reply) = try await transfer.request(RequestedRange(from: start, to: end), nil, of: place)
    let known = Checkpoint(ranges: ByteRangeSet(0..<end), total: .known(total))
    let plan = ResumePlan.decide(checkpoint: known, request: ask, reply: reply)
    run.context.options.probe?.note(.planned(run.id, plan))
    do {
      guard case .append = plan, case .range(_, .known(total)) = reply.coverage else {
        if case .reject(let error) = plan { throw error }
        throw DownloadError(.unproven, "the mirror did not send the requested part of a file of \(total) bytes")
      }
      let cursor = Cursor(start)
      try await reply.body.forEachChunk { chunk in
        let onDisk = try partial.read(at: cursor.advance(chunk.byteCount), count: chunk.byteCount)
        guard chunk.firstDifference(from: onDisk) == nil else {
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
      total: .known(total), validator: reply.validator, resource: (reply.finalURL ?? place.url).resourceKey)
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
