internal import Synchronization

/// Writes the chunks of one body to the partial, and checks them: their length, and those that are already on disk.
///
/// Runs on the transport's thread, one chunk after the other. Other threads read its atomics.
final class BodyWriter: Sendable {
  /// The position of the body's first byte.
  let start: Int64
  /// Bytes before this position are on disk and are compared instead of written.
  let compareUntil: Int64
  /// The position after the last announced byte; `nil` if the reply has no length.
  let end: Int64?
  private let partial: any Partial
  private let run: Run
  private let maximumSize: Int64?
  private let bytesBetweenCheckpoints: Int64
  private let position: Atomic<Int64>
  /// Only used on the transport's thread after the start.
  private let nextCheckpoint: Atomic<Int64>
  private let isAborted = Atomic(false)
  private let control = Mutex(Control())

  private struct Control {
    var failure: DownloadError?
    var request: AsyncStream<Void>.Continuation?
  }

  init(
    partial: any Partial, run: Run, book: CheckpointBook, start: Int64, compareUntil: Int64, end: Int64?,
    maximumSize: Int64?
  ) {
    self.partial = partial
    self.run = run
    self.start = start
    self.compareUntil = compareUntil
    self.end = end
    self.maximumSize = maximumSize
    bytesBetweenCheckpoints = book.bytesBetween
    position = Atomic(start)
    nextCheckpoint = Atomic(.max)
  }

  /// Requests a checkpoint each time enough bytes have been written; the stream's buffer of one coalesces requests.
  func requestsCheckpoints(from request: AsyncStream<Void>.Continuation) {
    control.withLock { $0.request = request }
    nextCheckpoint.store(max(start, compareUntil) + bytesBetweenCheckpoints, ordering: .relaxed)
  }

  /// Makes the next chunk throw `error`.
  func abort(with error: DownloadError) {
    control.withLock { $0.failure = $0.failure ?? error }
    isAborted.store(true, ordering: .releasing)
  }

  /// The position after the last byte that was written or compared.
  var offset: Int64 { position.load(ordering: .acquiring) }

  func take(_ bytes: RawSpan) throws {
    var offset = position.load(ordering: .relaxed)
    var bytes = bytes
    if isAborted.load(ordering: .acquiring), let error = control.withLock({ $0.failure }) { throw error }
    let count = Int64(bytes.byteCount)
    run.fetched.wrappingAdd(count, ordering: .relaxed)
    if let end, count > end - offset {
      throw DownloadError(.lengthMismatch, "the server sent more than the \(end) bytes it announced")
    }
    if let maximumSize, count > maximumSize - offset {
      throw DownloadError(.tooLarge, "the file has more than the maximum of \(maximumSize) bytes")
    }
    if offset < compareUntil {
      let overlap = Int(min(count, compareUntil - offset))
      try compare(bytes.extracting(first: overlap), at: offset)
      offset += Int64(overlap)
      position.store(offset, ordering: .releasing)
      bytes = bytes.extracting(droppingFirst: overlap)
      if bytes.isEmpty { return }
    }
    do { try partial.write(bytes, at: offset) } catch {
      throw DownloadError(error, as: .storage, stage: run.storageName)
    }
    offset += Int64(bytes.byteCount)
    position.store(offset, ordering: .releasing)
    run.received.store(offset, ordering: .relaxed)
    if offset >= nextCheckpoint.load(ordering: .relaxed) {
      nextCheckpoint.store(offset + bytesBetweenCheckpoints, ordering: .relaxed)
      control.withLock { $0.request }?.yield()
    }
  }

  private func compare(_ bytes: RawSpan, at offset: Int64) throws {
    let onDisk = try partial.read(at: offset, count: bytes.byteCount)
    let isEqual =
      onDisk.count == bytes.byteCount
      && bytes.withUnsafeBytes { fresh in onDisk.withUnsafeBytes { kept in fresh.elementsEqual(kept) } }
    guard isEqual else {
      throw DownloadError(
        .contentChanged, "the bytes at \(offset) differ from those on disk: the file on the server has changed")
    }
  }
}
