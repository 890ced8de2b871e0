internal import Synchronization

/// Writes the chunks of one body to the partial, and checks them: their length, and those that are already on disk.
///
/// If a whole body differs from the bytes on disk, and it has a replacement, because the retry policy would restart after
/// that, the body takes the place of these bytes from the first difference on: another request would only fetch the same
/// body again. The partial is cut there first. So however the process ends, all bytes on disk are of one representation, and the ledger, which
/// may still have the old checkpoint, finds out by size and marks how many there are.
///
/// Runs on the transport's thread, one chunk after the other. Other threads read its atomics.
final class BodyWriter: CheckpointedWriter {
  private let bounds: BodyBounds
  /// The representation of the body, if it may take the place of the bytes on disk.
  private let replacement: Adoption?
  /// The position from which the body has taken the place of the bytes on disk; -1 if it has not.
  private let replacedFrom = Atomic<Int64>(-1)
  private let partial: any Partial
  private let run: Run
  private let book: CheckpointBook
  private let position: Atomic<Int64>
  private let checkpoints: CheckpointRequests
  /// What the source knew at the end of the body.
  let bodyEnd = Mutex(Body.End())

  init(
    partial: any Partial, run: Run, book: CheckpointBook, _ bounds: BodyBounds, replacement: Adoption? = nil
  ) {
    self.partial = partial
    self.run = run
    self.book = book
    self.bounds = bounds
    self.replacement = replacement
    position = Atomic(bounds.start)
    checkpoints = CheckpointRequests(book.policy, time: run.context.time)
  }

  /// The position of the body's first byte.
  var start: Int64 { bounds.start }

  /// Whether the body has taken the place of the bytes on disk.
  var hasReplaced: Bool { replacedFrom.load(ordering: .acquiring) >= 0 }

  /// Bytes before this position are on disk and are compared instead of written.
  var compareUntil: Int64 {
    let replaced = replacedFrom.load(ordering: .acquiring)
    return replaced >= 0 ? replaced : bounds.compareUntil
  }

  /// The position after the last announced byte; `nil` if the reply has no length.
  var end: Int64? { hasReplaced ? replacement?.total?.bytes : bounds.end }

  var provenBytes: ByteRangeSet? {
    let offset = offset
    return offset > compareUntil ? ByteRangeSet(0..<offset) : nil
  }

  func requestsCheckpoints(from request: AsyncStream<Void>.Continuation) {
    checkpoints.begin(request, at: max(start, compareUntil))
  }

  func abort(with error: DownloadError) { checkpoints.abort(with: error) }

  /// The position after the last byte that was written or compared.
  var offset: Int64 { position.load(ordering: .acquiring) }

  func take(_ bytes: RawSpan) throws {
    var offset = position.load(ordering: .relaxed)
    var bytes = bytes
    try checkpoints.check()
    let count = Int64(bytes.byteCount)
    run.fetched.wrappingAdd(count, ordering: .relaxed)
    if let maximum = bounds.maximum, count > maximum - offset {
      throw DownloadError(.tooLarge, "the file has more than the maximum of \(maximum) bytes")
    }
    if offset < compareUntil {
      let overlap = Int(min(count, compareUntil - offset))
      let equal = try compare(bytes.extracting(first: overlap), at: offset)
      offset += Int64(equal)
      if equal < overlap { try replace(at: offset) }
      position.store(offset, ordering: .releasing)
      bytes = bytes.extracting(droppingFirst: equal)
      if bytes.isEmpty { return }
    }
    if let end, Int64(bytes.byteCount) > end - offset {
      throw bounds.isEndAnnounced || hasReplaced
        ? DownloadError(.lengthMismatch, "the server sent more than the \(end) bytes it announced")
        : DownloadError(.sizeChanged, "the file on the server has more than the \(end) bytes that it had before")
    }
    do { try partial.write(bytes, at: offset) } catch {
      throw DownloadError(error, as: .storage, stage: run.storageName)
    }
    offset += Int64(bytes.byteCount)
    position.store(offset, ordering: .releasing)
    run.received.store(offset, ordering: .relaxed)
    checkpoints.written(offset)
  }

  /// Compares bytes with those on disk, and returns the number of equal bytes before the first difference.
  private func compare(_ bytes: RawSpan, at offset: Int64) throws -> Int {
    bytes.firstDifference(from: try partial.read(at: offset, count: bytes.byteCount)) ?? bytes.byteCount
  }

  /// Lets the body take the place of the bytes on disk from their first difference on.
  /// - Throws: `.contentChanged` if there is no replacement: the retry policy would not restart, or the body is not the
  ///   whole file.
  private func replace(at offset: Int64) throws {
    let error = DownloadError(
      .contentChanged, "the bytes at \(offset) differ from those on disk: the file on the server has changed")
    guard let replacement else { throw error }
    do { try partial.truncate(to: offset) } catch {
      throw DownloadError(error, as: .storage, stage: run.storageName)
    }
    // Followers were told the size that had been announced, by which they bound their output.
    let hasOtherSize = run.read { $0.checkpoint.total.bytes } != replacement.total?.bytes
    if hasOtherSize { (partial as? FollowedPartial)?.refuseReaders() }
    run.forgetBytes()
    run.update { record in
      record.checkpoint.ranges.insert(before: offset)
      replacement.apply(to: &record.checkpoint)
    }
    book.reset(to: offset)
    replacedFrom.store(offset, ordering: .releasing)
    checkpoints.restart(at: offset)
    run.announce(.restarted(error))
  }
}
