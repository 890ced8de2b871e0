@_spi(Ledger) import DownpipeCore
import Foundation

/// Counts the bytes that downloads receive although they have received them before.
///
/// The reasons for which bytes are forgiven are seen where they arise: at the ledger, the disk, the servers and the end of a
/// process. So an engine, a ledger or a storage that loses bytes for no reason is found, however it goes about it.
struct FetchedBytes: Sendable {
  /// The bytes that a resume compares with those on disk, and those that two connections compare where they meet.
  static let compared: Int64 = 64 << 10

  /// The most seams between the connections of a download.
  private static let mostSeams: Int64 = 2

  /// What one download has received.
  private struct Entry: Sendable {
    /// Grows when everything that was received may be received again.
    var epoch = 0
    /// The version of the file, while there is one.
    var content: FileContent?
    var bytes = ByteRangeSet()
    /// Whether the version has changed since the ledger has taken a checkpoint.
    var isNewVersion = false
    /// The bytes of `bytes` that may be received again.
    var forgiven: Int64 = 0
    /// The process that has received last.
    var receiver = 0
    /// The numbers of the bodies that are being received.
    var bodies: Set<Int> = []
    var largestChunk: Int64 = 0
    /// Whether a mirror has sent another file: what it has sent is dropped when that is noticed.
    var hasWrongCopy = false
    /// The server that has sent the last bytes.
    var server: String?
    /// Whether a server has sent bytes from another place than it was asked for: the validator of the one proves nothing of
    /// the other.
    var wasRedirected = false
    /// The strong validator of the last reply that had one.
    var validator: Validator?
    /// Whether something that a server did, or does not do, may prove that the bytes are of no use.
    var isDoubtful = false
    /// The failures of disk and ledger so far, as far as they are noted here.
    var failures = 0

    mutating func forget() {
      epoch += 1
      (content, bytes, isNewVersion, forgiven) = (nil, ByteRangeSet(), false, 0)
    }
  }

  /// A body that is being received.
  struct Body: Sendable {
    let id: DownloadID
    let content: FileContent
    fileprivate let number: Int
    fileprivate var epoch: Int
    /// The bytes that the download had when it asked for the body: a connection that takes the place of a slow one is no
    /// repetition.
    fileprivate let before: ByteRangeSet
    /// The bytes of `before` that may be compared; `nil` for any number.
    fileprivate var comparing: Int64?
  }

  /// What a download has received at some moment.
  struct Received: Sendable {
    fileprivate let epoch: Int
    fileprivate let content: FileContent?
    fileprivate let bytes: ByteRangeSet
  }

  private struct Place: Hashable {
    let process: Int
    let url: String
  }

  private var entries: [DownloadID: Entry] = [:]
  private var lastBody = 0
  /// The URLs whose ranges a process does not trust any more: it asks for whole files.
  private var distrusted: Set<Place> = []

  // MARK: What a download receives

  /// Notes a reply. A server that does not send the requested range is asked for whole files from now on.
  mutating func replied(_ reply: SourceReply, to request: SourceRequest, _ process: Int) {
    doubt(by: reply, to: request)
    // Bytes behind a gap are not proved by the validator of another resource.
    if reply.finalURL != nil, let entry = entries[request.id], entry.bytes.ranges.count > 1 { forget(request.id) }
    // A whole file takes the place of the bytes behind a gap, also one of a mirror, whose validator proves nothing.
    let entry = entries[request.id]
    let isOther = entry?.wasRedirected == true || entry?.server.map { $0 != key(request) } ?? false
    let isUnasked = isOther || request.range != nil || distrusted.contains(Place(process: process, url: key(request)))
    // So does the rest of a file that was redirected before.
    let isRefused = if case .none = reply.coverage { true } else { false }
    let isRest = !isRefused && request.range?.end == nil && entry?.wasRedirected == true
    if reply.coverage == .whole && isUnasked || isRest, let bytes = entries[request.id]?.bytes {
      entries[request.id]?.bytes = bytes.intersection(ByteRangeSet(0..<bytes.prefixLength))
    }
    if reply.finalURL != nil { entries[request.id]?.wasRedirected = true }
    guard let asked = request.range else { return }
    switch reply.coverage {
    case .range(let range, _) where range.lowerBound == asked.start: break
    default: distrust(request, process)
    }
  }

  /// Notes whether a reply may belong to another version than an earlier one.
  private mutating func doubt(by reply: SourceReply, to request: SourceRequest) {
    if case .none = reply.coverage { return }
    var entry = entries[request.id] ?? Entry()
    defer { entries[request.id] = entry }
    guard reply.finalURL == nil, let validator = reply.validator, validator.isStrong else {
      return entry.isDoubtful = true
    }
    if let known = entry.validator, known.compare(to: validator) != .sameStrong { entry.isDoubtful = true }
    entry.validator = validator
  }

  /// Notes a fault of a server, which may prove that the bytes are of no use.
  mutating func doubt(_ id: DownloadID, hasWrongCopy: Bool = false) {
    entries[id, default: Entry()].isDoubtful = true
    if hasWrongCopy { entries[id]?.hasWrongCopy = true }
  }

  /// Notes that the downloader fetches a file from the start, because a reply does not fit the bytes on disk.
  mutating func restarted(_ id: DownloadID) { if entries[id]?.isDoubtful == true { forget(id) } }

  /// Notes that a server has sent another range than the one that it was asked for, or has said that it sends, or bytes or sizes
  /// that contradict what is known.
  mutating func distrust(_ request: SourceRequest, _ process: Int) {
    if request.range != nil { distrusted.insert(Place(process: process, url: key(request))) }
  }

  /// What a download has received so far.
  func received(of id: DownloadID) -> Received {
    let entry = entries[id] ?? Entry()
    return Received(epoch: entry.epoch, content: entry.content, bytes: entry.bytes)
  }

  private func key(_ request: SourceRequest) -> String { (request.url.host() ?? "") + request.url.path() }

  /// Notes that a body begins.
  ///
  /// - Parameters:
  ///   - start: The position of its first byte.
  ///   - received: What the download had received when it asked for the body.
  ///   - isSegmented: Whether the download may have several connections.
  ///   - failures: The number of failures of disk and ledger so far.
  mutating func begin(
    _ request: SourceRequest, _ content: FileContent, from start: Int64, _ process: Int, beside received: Received,
    isSegmented: Bool, failures: Int
  ) -> Body {
    lastBody += 1
    var entry = entries[request.id] ?? Entry()
    if entry.failures != failures { entry.forget() }
    (entry.failures, entry.receiver, entry.server) = (failures, process, key(request))
    entry.bodies.insert(lastBody)
    entries[request.id] = entry
    // The compared bytes differ: the whole file is asked for.
    if let known = entry.content, known != content { distrust(request, process) }
    // Where the bytes of two connections meet, those behind the seam are fetched and compared, too.
    var comparing: Int64? = Self.compared * (request.range?.end == nil && !isSegmented ? 1 : 3)
    let isOtherRange = request.range.map { $0.start != start }
    if isOtherRange ?? distrusted.contains(Place(process: process, url: key(request))) { comparing = nil }
    if entry.hasWrongCopy { comparing = nil }
    return Body(
      id: request.id, content: content, number: lastBody, epoch: entry.epoch,
      before: content == received.content && entry.epoch == received.epoch
        ? received.bytes.intersection(entry.bytes) : ByteRangeSet(),
      comparing: comparing)
  }

  /// Notes bytes that the downloader has accepted.
  ///
  /// - Returns: What is wrong, if they are too many.
  mutating func received(_ range: ByteRange, of body: inout Body, failures: Int) -> String? {
    guard var entry = entries[body.id] else { return nil }
    defer { entries[body.id] = entry }
    if entry.failures != failures {
      entry.failures = failures
      entry.forget()
    }
    // What a body brings that has been given up meanwhile is not kept.
    guard body.epoch == entry.epoch else { return nil }
    if entry.content != body.content {
      entry.forget()
      (entry.content, entry.isNewVersion) = (body.content, true)
      (body.epoch, body.comparing) = (entry.epoch, nil)
    }
    entry.largestChunk = max(entry.largestChunk, Int64(range.count))
    entry.bytes.insert(contentsOf: range)
    guard let left = body.comparing else { return nil }
    let again = body.before.intersection(ByteRangeSet(range)).byteCount
    let compared = min(left, again)
    body.comparing = left - compared
    entry.forgiven -= again - compared
    guard again > compared, entry.forgiven < 0 else { return nil }
    return
      "\(body.id) receives bytes \(range.lowerBound)-\(range.upperBound - 1) again: \(-entry.forgiven) of them more "
      + "than for any reason"
  }

  mutating func ended(_ body: Body) { entries[body.id]?.bodies.remove(body.number) }

  // MARK: Reasons to receive bytes again

  /// Everything that a download has received may be received again.
  mutating func forget(_ id: DownloadID) { entries[id]?.forget() }

  /// Notes a change of the ledger.
  mutating func ledgerHas(
    _ record: DownloadRecord?, since before: DownloadRecord?, _ change: LedgerChange, _ id: DownloadID
  ) {
    guard let record, let before, record.generation == before.generation else { return forget(id) }
    if case .transition(let event) = change, Self.startsAgain.contains(event) { forget(id) }
    let (old, new) = (before.request, record.request)
    let asksForAnother =
      old.url != new.url || old.mirrors != new.mirrors || old.expectedDigests != new.expectedDigests
    // A failed download may be leased again in the same change.
    let hasFailed =
      record.error != before.error && record.error.map { Self.wrongBytes.contains($0.code) } == true
      && (entries[id]?.isDoubtful == true || isWrong(id, for: old))
    // A run that does not learn of a changed request, such as one of another process, works in vain.
    let wasInVain = before.isOutdated || record.isOutdated
    if asksForAnother || hasFailed || wasInVain || record.phase == .finished || record.phase == .cancelled {
      forget(id)
    }
    if record.checkpoint.ranges != before.checkpoint.ranges { entries[id]?.isNewVersion = false }
    // A transfer that stops before the bytes behind a seam were compared gives them up.
    guard before.phase.isActive, !record.phase.isActive, new.tags.contains(SimulatedSegments.tag),
      let lost = entries[id]?.bytes.subtracting(record.checkpoint.ranges)
    else { return }
    if lost.byteCount <= Self.mostSeams * Self.compared { entries[id]?.bytes.subtract(lost) }
  }

  /// Whether the server has another file than the one that was expected.
  private func isWrong(_ id: DownloadID, for request: DownloadRequest) -> Bool {
    guard let content = entries[id]?.content else { return false }
    let hasOtherDigest = !request.expectedDigests.isEmpty && !request.expectedDigests.contains(content.digest)
    return hasOtherDigest || request.expectedSize != .unknown && request.expectedSize != .known(content.size)
  }

  /// The events after which the bytes are of no use.
  private static let startsAgain: Set<Lifecycle.Event> = [.restart, .refresh, .cancel, .discard, .artifactLost]
  /// The failures that prove that the bytes are of no use.
  private static let wrongBytes: Set<DownloadError.Code> = [.contentChanged, .sizeChanged, .digestMismatch, .damaged]

  /// Notes that a run was told to stop.
  mutating func stopped(_ id: DownloadID, reason: String) {
    if ["restart", "cancel", "remove", "changed", "lostLease"].contains(reason) { forget(id) }
  }

  /// Forgives what the death of a process has cost: the bytes that are in no checkpoint, as far as there may be such.
  ///
  /// - Parameters:
  ///   - checkpoints: How often checkpoints are committed; `nil` if disk or ledger may have been too slow for that.
  ///   - record: The download in the ledger.
  mutating func died(
    _ process: Int, _ checkpoints: CheckpointPolicy?, _ record: (DownloadID) -> DownloadRecord?
  ) {
    for (id, entry) in entries where entry.receiver == process {
      defer { entries[id]?.bodies = [] }
      // In the pause after a checkpoint any number of bytes may arrive.
      guard let checkpoints, checkpoints.pause == .zero else {
        forget(id)
        continue
      }
      let most = checkpoints.bytes + entry.largestChunk * Int64(max(1, entry.bodies.count))
      // The checkpoint may still be that of the earlier version.
      let known = entry.isNewVersion ? ByteRangeSet() : record(id)?.checkpoint.ranges ?? ByteRangeSet()
      let lost = entry.bytes.subtracting(known)
      if lost.byteCount <= most {
        entries[id]?.bytes.subtract(lost)
      } else {
        entries[id]?.forgiven += most
      }
    }
  }
}
