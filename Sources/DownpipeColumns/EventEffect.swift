@_spi(Ledger) package import DownpipeCore
package import Foundation

/// The effect of a lifecycle event on the records in a phase, as SQL.
///
/// The SQL is derived by applying ``DownloadRecord/apply(_:)`` to three records, so that the lifecycle is defined in one
/// place only: one with a value in every column, an empty one, and one with an artifact in its place that replaces none, and
/// with two versions of its file.
package struct EventEffect: Sendable {
  package let next: DownloadState.Phase
  /// Such as `phase = 'waiting', error = NULL`.
  package let assignments: String
  /// The condition for the event apart from the phase.
  package let condition: String
  /// Whether a column gets a value that depends on other columns: the event is then applied to each record.
  package let needsRecord: Bool
  /// Whether that is so only for records whose artifact is in its place, see ``isPlaced``.
  package let needsPlacedRecord: Bool

  /// The condition for an artifact in its place, which has a time, and for a second partial. No event makes a record match that
  /// did not before.
  package static let isPlaced =
    "(artifact_modified_at IS NOT NULL OR coalesce(versions, '') LIKE '%\"hasOther\"%')"

  /// The effects of all events, for the phases in which they are legal.
  package static let all: [Lifecycle.Event: [DownloadState.Phase: EventEffect]] = Dictionary(
    uniqueKeysWithValues: Lifecycle.Event.allCases.map { event in
      let effects = DownloadState.Phase.allCases.compactMap { phase in
        (try? EventEffect(event, in: phase)).flatMap { $0 }.map { (phase, $0) }
      }
      return (event, Dictionary(uniqueKeysWithValues: effects))
    })

  /// The effect of a lease. Computing all effects would take a millisecond of the start of a process.
  package static let lease = (try? EventEffect(.leased, in: .waiting)).flatMap { $0 }

  private init?(_ event: Lifecycle.Event, in phase: DownloadState.Phase) throws {
    var empty = Self.empty(phase)
    var probe = empty
    let asksForMore = !probe.apply(event)
    // The only condition of an event apart from the phase.
    condition = asksForMore ? "paused_together = 1" : "TRUE"
    empty.isPausedTogether = asksForMore
    // Records whose artifact is in its place are judged below.
    var full = Self.full(phase)
    if phase != .finished { full.steps.artifact?.modifiedAt = nil }
    let before = [full, empty]
    var after = before
    for index in after.indices {
      guard after[index].apply(event) else { return nil }
    }
    next = after[0].phase
    var assignments: [String] = []
    var needsRecord = false
    for column in RecordColumns.all {
      let old = try before.map(column.value)
      let new = try after.map(column.value)
      guard old != new else { continue }
      if new[0] == new[1] {
        assignments.append("\(column.name) = \(new[0].literal)")
      } else if case (.integer(let old), .integer(let new)) = (old[0], new[0]) {
        // A counter: the event adds to it.
        assignments.append("\(column.name) = coalesce(\(column.name), 0) + \(new - old)")
      } else {
        needsRecord = true
      }
    }
    var placed = Self.full(phase)
    placed.earlierArtifact = nil
    placed.versions = VersionLog(isInSecond: true, hasOther: true, earlier: placed.checkpoint)
    var moved = placed
    moved.apply(event)
    needsPlacedRecord = try RecordColumns.all.contains { column in
      let isAssigned = assignments.contains { $0.hasPrefix("\(column.name) = ") }
      return try !isAssigned && column.value(placed) != column.value(moved)
    }
    if after[0].owner != before[0].owner { assignments.append("owner = NULL, lease = NULL") }
    self.assignments = assignments.joined(separator: ", ")
    self.needsRecord = needsRecord
  }

  /// A record without values.
  package static func empty(_ phase: DownloadState.Phase) -> DownloadRecord {
    var record = RecordColumns.blank
    record.phase = phase
    return record
  }

  /// A record with a value in every column that an event may change.
  package static func full(_ phase: DownloadState.Phase) -> DownloadRecord {
    var record = RecordColumns.blank
    let time = Date(timeIntervalSince1970: 1)
    let digest = FileDigest(.sha256, bytes: [1])
    record.phase = phase
    record.owner = "owner"
    record.notBefore = time
    record.attempts = 1
    record.consecutiveFailures = 1
    record.repeatedFailures = 1
    record.bytesFetched = 1
    record.resumedFrom = 1
    record.wasInterrupted = true
    record.isPausedTogether = true
    record.awaited = .network
    record.error = DownloadError(.network, "error")
    record.checkpoint = Checkpoint(
      ranges: ByteRangeSet([0..<1]), total: .known(1),
      validator: Validator(entityTag: EntityTag("tag"), lastModified: time, responseDate: time), resource: "resource",
      contentCoding: "coding", name: "name", mediaType: "type", digests: [digest],
      marks: [BlockMark(range: 0..<1, digest: digest)], isComplete: true, freshUntil: time)
    record.versions = VersionLog(mayChange: true)
    record.steps = StepLog(
      completed: ["step"],
      artifact: StoredArtifact(
        kind: .file, path: "path", name: "name", size: 1, mediaType: "type", modifiedAt: time,
        companions: [.init(suffix: ".companion")], location: "location"),
      note: "note", verified: [VerifiedDigest(digest, from: .request)])
    record.refreshing = .fetching
    record.earlierArtifact = StoredArtifact(kind: .file, path: "earlier", name: "earlier", size: 2, mediaType: nil)
    return record
  }
}
