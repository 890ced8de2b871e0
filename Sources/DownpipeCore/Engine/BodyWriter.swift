internal import Synchronization

/// Puts the chunks of one body where they belong, and refuses what does not belong there.
///
/// Runs on the transport's thread, one chunk after the other; the atomics let other threads look on.
final class BodyWriter: Sendable {
  private let partial: any Partial
  private let storage: any Storage
  private let run: Run
  /// Bytes before this position are on disk already and are compared instead of written.
  private let compareUntil: Int64
  /// The position after the last byte that the reply announced.
  private let end: Int64?
  private let maximumSize: Int64?
  private let checkpointBytes: Int64
  private let position: Atomic<Int64>
  private let nextRequest: Atomic<Int64>
  private let isAborted = Atomic(false)
  private let failure = Mutex<DownloadError?>(nil)

  init(
    partial: any Partial, of storage: any Storage, run: Run, start: Int64, compareUntil: Int64, end: Int64?,
    maximumSize: Int64?, checkpointBytes: Int64
  ) {
    self.partial = partial
    self.storage = storage
    self.run = run
    self.compareUntil = compareUntil
    self.end = end
    self.maximumSize = maximumSize
    self.checkpointBytes = min(max(1, checkpointBytes), 1 << 60)
    position = Atomic(start)
    nextRequest = Atomic(max(start, compareUntil) + self.checkpointBytes)
  }

  /// Ends the body at its next chunk.
  func abort(with error: DownloadError) {
    failure.withLock { $0 = $0 ?? error }
    isAborted.store(true, ordering: .releasing)
  }

  /// The position after the last byte taken.
  var offset: Int64 { position.load(ordering: .acquiring) }

  /// Takes a chunk.
  func take(_ bytes: RawSpan) throws {
    var offset = position.load(ordering: .relaxed)
    var bytes = bytes
    if isAborted.load(ordering: .acquiring), let error = failure.withLock({ $0 }) { throw error }
    let count = Int64(bytes.byteCount)
    run.fetched.wrappingAdd(count, ordering: .relaxed)
    if let end, count > end - offset {
      throw DownloadError(.lengthMismatch, "the server sent more than the \(end) bytes it announced")
    }
    if let maximumSize, count > maximumSize - offset {
      throw DownloadError(.tooLarge, "the file has more than the \(maximumSize) bytes allowed")
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
      throw DownloadError(error, as: .storage, stage: storage.name)
    }
    offset += Int64(bytes.byteCount)
    position.store(offset, ordering: .releasing)
    run.received.store(offset, ordering: .relaxed)
    if offset >= nextRequest.load(ordering: .relaxed) {
      nextRequest.store(offset + checkpointBytes, ordering: .relaxed)
      run.checkpointIsDue.store(true, ordering: .relaxed)
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
