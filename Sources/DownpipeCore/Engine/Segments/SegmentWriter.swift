internal import Synchronization

/// Why a feed has ended before its body did.
enum FeedEnd: Error {
  /// Its bytes are not needed any more.
  case done
  /// The place has sent bytes that differ from those of another place.
  case wrongBytes(place: Int)
  /// The file has changed, or this device fails: the transfer cannot go on.
  case fatal(DownloadError)
}

/// Writes the chunks of several bodies of one file to the partial, as a ``SegmentTable`` says.
///
/// Feeds run on the transport's threads, several at once; the lock of the table is not held while a chunk is written.
final class SegmentWriter: CheckpointedWriter {
  private let table: Mutex<SegmentTable>
  private let partial: any Partial
  private let run: Run
  /// The offset from which the first body continues the bytes on disk, once it has been compared up to there.
  private let proofAt: Int64
  private let isProvenFlag: Atomic<Bool>
  private let checkpoints: CheckpointRequests
  /// Tells the conductor that something has changed; coalesced.
  private let newsSender: AsyncStream<Void>.Continuation
  /// Whether there are enough bytes at the front of the file to compare those of a mirror with.
  private let hasFront: Atomic<Bool>
  /// An element each time the conductor may have something to do.
  let news: AsyncStream<Void>

  /// - Parameter proofAt: The number of bytes on disk that the first body is compared with; 0 for none.
  init(_ table: SegmentTable, partial: any Partial, run: Run, checkpoints policy: CheckpointPolicy, proofAt: Int64) {
    self.table = Mutex(table)
    self.partial = partial
    self.run = run
    self.proofAt = proofAt
    isProvenFlag = Atomic(proofAt == 0)
    hasFront = Atomic(table.hasFront)
    checkpoints = CheckpointRequests(policy, time: run.context.time)
    (news, newsSender) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  deinit { newsSender.finish() }

  func withTable<Value: Sendable>(_ body: (inout SegmentTable) -> Value) -> Value { table.withLock { body(&$0) } }

  /// Whether the first body has been shown to continue the bytes on disk. Nothing else is fetched before that.
  var isProven: Bool { isProvenFlag.load(ordering: .acquiring) }

  /// Whether the bytes of a mirror can be compared with those on disk.
  var canCompare: Bool { isProven && hasFront.load(ordering: .acquiring) }

  var provenBytes: ByteRangeSet? { isProven ? withTable { $0.proven } : nil }

  var removals: Int { withTable { $0.removals } }

  func ledgerKnows(removals: Int) {
    withTable { $0.release(removals: removals) }
    newsSender.yield()
  }

  /// Lets the ledger know soon that bytes were removed.
  func requestCheckpoint() { checkpoints.requestNow() }

  func requestsCheckpoints(from request: AsyncStream<Void>.Continuation) {
    checkpoints.begin(request, at: withTable { $0.writtenCount })
  }

  func abort(with error: DownloadError) { checkpoints.abort(with: error) }

  /// Takes a chunk of a feed. Only called on the thread of that feed's transport.
  func take(_ bytes: RawSpan, of id: SegmentTable.FeedID) throws {
    run.fetched.wrappingAdd(Int64(bytes.byteCount), ordering: .relaxed)
    var bytes = bytes
    while !bytes.isEmpty {
      do { try checkpoints.check() } catch { throw FeedEnd.fatal(error) }
      let count = bytes.byteCount
      let range: ByteRange
      switch table.withLock({ $0.next(id, count: count) }) {
      case .end: throw FeedEnd.done
      case .skip(let some): range = some
      case .compare(let some):
        range = some
        try compare(bytes.extracting(first: Int(range.length)), at: range.lowerBound, of: id)
      case .write(let some):
        range = some
        try write(bytes.extracting(first: Int(range.length)), range, of: id)
      }
      if !isProven, range.upperBound >= proofAt {
        isProvenFlag.store(true, ordering: .releasing)
        newsSender.yield()
      }
      bytes = bytes.extracting(droppingFirst: Int(range.length))
    }
  }

  private func write(_ bytes: RawSpan, _ range: ByteRange, of id: SegmentTable.FeedID) throws {
    do {
      try partial.write(bytes, at: range.lowerBound)
    } catch {
      table.withLock { $0.failed(id) }
      throw FeedEnd.fatal(DownloadError(error, as: .storage, stage: run.storageName))
    }
    let (count, isComplete, hasFront) = table.withLock { table in
      table.wrote(range, by: id)
      return (table.writtenCount, table.isComplete, table.hasFront)
    }
    run.written.store(count, ordering: .relaxed)
    if hasFront, !self.hasFront.exchange(true, ordering: .acquiringAndReleasing) || isComplete { newsSender.yield() }
    checkpoints.written(count)
  }

  private func compare(_ bytes: RawSpan, at offset: Int64, of id: SegmentTable.FeedID) throws {
    let onDisk: [UInt8]
    do { onDisk = try partial.read(at: offset, count: bytes.byteCount) } catch {
      throw FeedEnd.fatal(DownloadError(error, as: .storage, stage: run.storageName))
    }
    guard let equal = bytes.firstDifference(from: onDisk) else {
      let isOver = table.withLock { table in
        table.compared(offset..<(offset + Int64(bytes.byteCount)), by: id)
        return table.isComplete && table.seams.isEmpty
      }
      if isOver { newsSender.yield() }
      return
    }
    let place = offset + Int64(equal)
    if let wrong = table.withLock({ $0.wrongPlace(id, at: place) }) { throw FeedEnd.wrongBytes(place: wrong) }
    throw FeedEnd.fatal(
      DownloadError(
        .contentChanged, "the bytes at \(place) differ from those on disk: the file on the server has changed"))
  }
}
