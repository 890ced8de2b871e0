internal import Synchronization

/// Writes the chunks of one body to the partial, and checks them: their length, and those that are already on disk.
///
/// Runs on the transport's thread, one chunk after the other. Other threads read its atomics.
final class BodyWriter: CheckpointedWriter {
  let bounds: BodyBounds
  /// The bytes that were on disk before.
  private let kept: ByteRangeSet
  private let keptCount: Int64
  private let partial: any Partial
  private let run: Run
  private let book: CheckpointBook
  private let position: Atomic<Int64>
  private let checkpoints: CheckpointRequests
  /// What the source knew at the end of the body.
  let bodyEnd = Mutex(Body.End())

  /// - Parameter kept: The bytes that are on disk and stay.
  init(partial: any Partial, run: Run, book: CheckpointBook, _ bounds: BodyBounds, keeping kept: ByteRangeSet) {
    self.partial = partial
    self.run = run
    self.book = book
    self.bounds = bounds
    self.kept = kept
    keptCount = kept.byteCount
    position = Atomic(bounds.start)
    checkpoints = CheckpointRequests(book.policy, time: run.context.time)
  }

  var provenBytes: ByteRangeSet? {
    let offset = offset
    guard offset > bounds.compareUntil else { return nil }
    var bytes = kept
    bytes.insert(contentsOf: bounds.compareUntil..<offset)
    return bytes
  }

  func requestsCheckpoints(from request: AsyncStream<Void>.Continuation) {
    checkpoints.begin(request, at: bounds.compareUntil)
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
    if offset < bounds.compareUntil {
      let overlap = Int(min(count, bounds.compareUntil - offset))
      try compare(bytes.extracting(first: overlap), at: offset)
      offset += Int64(overlap)
      position.store(offset, ordering: .releasing)
      bytes = bytes.extracting(droppingFirst: overlap)
      if bytes.isEmpty { return }
    }
    if let end = bounds.end, Int64(bytes.byteCount) > end - offset {
      throw bounds.isEndAnnounced
        ? DownloadError(.lengthMismatch, "the server sent more than the \(end) bytes it announced")
        : DownloadError(.sizeChanged, "the file on the server has more than the \(end) bytes that it had before")
    }
    do { try partial.write(bytes, at: offset) } catch {
      throw DownloadError(error, as: .storage, stage: run.storageName)
    }
    offset += Int64(bytes.byteCount)
    position.store(offset, ordering: .releasing)
    run.written.store(keptCount + offset - bounds.compareUntil, ordering: .relaxed)
    checkpoints.written(offset)
  }

  /// Compares bytes with those on disk.
  /// - Throws: `.contentChanged` if they differ.
  private func compare(_ bytes: RawSpan, at offset: Int64) throws {
    guard let equal = bytes.firstDifference(from: try partial.read(at: offset, count: bytes.byteCount)) else { return }
    if bounds.isWhole { run.findings.withLock { $0.hasOtherBytes = true } }
    throw DownloadError(
      .contentChanged, "the bytes at \(offset + Int64(equal)) that the server now sends differ from those on disk")
  }
}
