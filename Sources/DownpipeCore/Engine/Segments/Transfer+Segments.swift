internal import Foundation
internal import Synchronization

// Which transfers are fetched in segments.
extension Transfer {
  /// The decisions about the connections of a file, if it can be fetched in segments: its server has a strong validator
  /// for it, states its size, does not code it, and does not deny ranges.
  ///
  /// A partial with missing bytes in its middle is completed in the same way, if need be over a single connection.
  /// - Parameter kept: The number of bytes on disk with which the reply continues.
  func segments(
    of reply: SourceReply, comparing kept: Int64, trusting trust: RangeTrust
  ) -> (any SegmentSession, total: Int64)? {
    guard trust == .full, reply.contentCoding == nil, reply.body.file == nil, reply.validator?.isStrong == true,
      reply.acceptsRanges != false
    else { return nil }
    let total: Int64
    switch reply.coverage {
    case .whole where kept == 0: total = reply.length.bytes ?? -1
    case .range(_, .known(let size)): total = size
    default: return nil
    }
    guard total > 0, total <= Self.largest else { return nil }
    let (context, hasHoles, isSame) = run.read { record in
      (
        record.transferContext, record.checkpoint.ranges.end > kept,
        record.checkpoint.ranges.isEmpty
          || record.checkpoint.validator?.compare(to: reply.validator) == .sameStrong
      )
    }
    guard isSame else { return nil }
    if let session = run.pipeline.segments?.start(size: total, of: context) {
      let bounded = BoundedSession(session)
      if bounded.maximumConnections > 1 { return (bounded, total) }
    }
    return hasHoles ? (OneConnection(), total) : nil
  }

  /// Whether the pipeline may use several connections for one file.
  var hasSegments: Bool { run.pipeline.segments != nil }

  /// Waits until the download may open its first connection to the host of a URL. In a pipeline without segments, whose
  /// downloads have one connection each, admission policies alone limit them.
  func openConnection(to url: URL) async throws -> HostConnections.Ticket? {
    guard hasSegments else { return nil }
    return try await run.context.connections.open(url.hostKey, mayExceed: run.exceedsLimits)
  }

  /// No disk holds more; and sums of offsets do not overflow.
  private static let largest: Int64 = 1 << 60

  /// Removes the ranges behind the first missing byte from the record, because they will be overwritten.
  func forgetLaterRanges() async throws {
    let front = run.read { $0.checkpoint.ranges.prefixLength }
    guard run.read({ $0.checkpoint.ranges.end }) > front else { return }
    run.update { $0.checkpoint.cut(to: front) }
    try await run.save([.checkpoint])
    book.reset(to: front)
  }

  /// Writes the body of a reply, and what other connections bring meanwhile, until all bytes are on disk.
  ///
  /// - Parameters:
  ///   - start: The offset of the first byte of the body.
  ///   - offset: The offset of the first missing byte.
  func write(
    _ reply: SourceReply, to asked: SourceRequest, from start: Int64, at offset: Int64, of total: Int64,
    in session: any SegmentSession, into partial: any Partial, adopting adoption: Adoption?
  ) async throws {
    let onDisk = run.read { $0.checkpoint.ranges }
    let table = SegmentTable(total: total, written: onDisk)
    let end = onDisk.ranges.first { $0.lowerBound >= offset }?.lowerBound ?? total
    let writer = SegmentWriter(
      table, partial: partial, run: run, checkpoints: book.policy, proofAt: start < offset ? offset : 0)
    var reference = Checkpoint(
      total: .known(total), validator: reply.validator, resource: (reply.finalURL ?? asked.url).resourceKey)
    reference.mediaType = reply.mediaType
    var places = SegmentPlaces(asked.url, reference: reference)
    if !run.context.doubtedMirrors.contains(run.id) {
      // Mirrors that the server names are ignored unless a digest proves the file (RFC 6249 §6).
      for other in run.places.beside(duplicates: isVerified(reply) ? reply.duplicates : [])
      where run.context.trust.level(of: other.url) == .full
        && (other.isNamedByServer || run.stages.source(for: other.url) != nil)
      {
        places.add(other.url, isNamedByServer: other.isNamedByServer)
      }
    }
    let urls = places.urls
    run.findings.withLock { $0.places.usedSegments = true }
    run.watchSpeed()
    defer {
      let (brought, written) = writer.withTable { ($0.brought, $0.written) }
      run.state.withLock { $0.watch = nil }
      run.findings.withLock { findings in
        var own = written.subtracting(onDisk)
        if start < offset { own.insert(contentsOf: start..<offset) }
        for bytes in brought.values { own.subtract(bytes) }
        findings.origins.note(own, from: asked.url)
        for (place, bytes) in brought.sorted(by: { $0.key < $1.key }) {
          findings.origins.note(bytes, from: urls[place])
        }
      }
      // However the bodies ended, the bytes count that have been compared where those of two connections meet.
      if let bytes = writer.provenBytes {
        run.update { record in
          record.checkpoint.ranges = bytes
          record.checkpoint.removeStrayMarks()
          adoption?.apply(to: &record)
        }
      }
      run.written.store(-1, ordering: .relaxed)
    }
    let transfer = SegmentedTransfer(transfer: self, partial: partial, writer: writer, session: session)
    try await following.receiving {
      try await book.committing(writer, of: partial, adopting: adoption) {
        try await transfer.perform(reply.body, filling: offset..<end, from: start, places)
      }
    }
  }

  /// Whether a step checks the file with a strong digest.
  private func isVerified(_ reply: SourceReply) -> Bool {
    run.read { record in
      let isStrong =
        (record.request.expectedDigests + reply.digests).contains { $0.algorithm.isStrong }
        || record.request.pieces?.algorithm.isStrong == true
      return isStrong && record.request.steps.verifiesDigests(of: run.pipeline.steps)
    }
  }
}

/// The session of a policy, whose numbers are moved into their ranges: the engine computes with them.
private struct BoundedSession: SegmentSession {
  let maximumConnections: Int
  private let base: any SegmentSession
  private static let most = 128

  init(_ base: any SegmentSession) {
    self.base = base
    maximumConnections = min(base.maximumConnections, Self.most)
  }

  func connections(after measurement: SegmentMeasurement) -> Int {
    min(max(1, base.connections(after: measurement)), maximumConnections)
  }
}

/// The completion of a partial in a pipeline without a segment policy.
private struct OneConnection: SegmentSession {
  var maximumConnections: Int { 1 }
  func connections(after measurement: SegmentMeasurement) -> Int { 1 }
}
