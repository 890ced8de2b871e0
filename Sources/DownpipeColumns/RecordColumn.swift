@_spi(Ledger) package import DownpipeCore
package import Foundation

/// A column of `download`: its name, the saves that write it, and its conversion from and to a record.
///
/// ``RecordColumns/all`` lists all columns. It is a class because a loop over the columns of each row would copy a name and
/// two closures for each.
package final class RecordColumn: Sendable {
  package let name: String
  /// The saves that write the column; empty if only adding and updating write it.
  package let fields: RecordFields
  /// Whether the column may be NULL.
  package let isOptional: Bool
  /// Whether the text of the column is JSON.
  package let isJSON: Bool
  /// Returns the column's value for a record.
  package let value: @Sendable (DownloadRecord) throws -> ColumnValue
  /// Sets the part of a record from the column's value, which is not NULL.
  /// - Returns: `false` for a value that is never written.
  package let read: @Sendable (ColumnValue, inout DownloadRecord) -> Bool

  package init(
    name: String, fields: RecordFields, isOptional: Bool, isJSON: Bool = false,
    value: @escaping @Sendable (DownloadRecord) throws -> ColumnValue,
    read: @escaping @Sendable (ColumnValue, inout DownloadRecord) -> Bool
  ) {
    self.name = name
    self.fields = fields
    self.isOptional = isOptional
    self.isJSON = isJSON
    self.value = value
    self.read = read
  }

  /// A column that is never NULL.
  package static func required<Value: ColumnCodable>(
    _ name: String, _ fields: RecordFields, _ get: @escaping @Sendable (DownloadRecord) -> Value,
    _ set: @escaping @Sendable (inout DownloadRecord, Value) -> Void
  ) -> RecordColumn {
    RecordColumn(
      name: name, fields: fields, isOptional: false, value: { try get($0).columnValue },
      read: { column, record in
        guard let value = Value(columnValue: column) else { return false }
        set(&record, value)
        return true
      })
  }

  /// A column that is NULL if there is no value.
  package static func optional<Value: ColumnCodable>(
    _ name: String, _ fields: RecordFields, isJSON: Bool = false, _ get: @escaping @Sendable (DownloadRecord) -> Value?,
    _ set: @escaping @Sendable (inout DownloadRecord, Value) -> Void
  ) -> RecordColumn {
    RecordColumn(
      name: name, fields: fields, isOptional: true, isJSON: isJSON, value: { try get($0)?.columnValue ?? .null },
      read: { column, record in
        guard let value = Value(columnValue: column) else { return false }
        set(&record, value)
        return true
      })
  }

  /// A column with JSON that is NULL if there is no value.
  package static func json<Value: Codable & Sendable>(
    _ name: String, _ fields: RecordFields, _ get: @escaping @Sendable (DownloadRecord) -> Value?,
    _ set: @escaping @Sendable (inout DownloadRecord, Value) -> Void
  ) -> RecordColumn {
    optional(name, fields, isJSON: true, { record in get(record).map { JSONText($0) } }, { set(&$0, $1.value) })
  }

  /// A column with JSON that is often the same in many rows: repeated values are converted only once.
  package static func repeatedJSON<Value: Codable & Sendable & Equatable>(
    _ name: String, _ fields: RecordFields, _ get: @escaping @Sendable (DownloadRecord) -> Value?,
    _ set: @escaping @Sendable (inout DownloadRecord, Value) -> Void
  ) -> RecordColumn {
    let last = LastJSON<Value>()
    return RecordColumn(
      name: name, fields: fields, isOptional: true, isJSON: true,
      value: { record in try get(record).map { try last.column(for: $0) } ?? .null },
      read: { column, record in
        guard let value = last.value(of: column) else { return false }
        set(&record, value)
        return true
      })
  }
}

/// Columns that are read together.
package struct ColumnList {
  package let columns: [RecordColumn]
  /// The number of columns that are never NULL.
  package let required: Int

  private init(_ columns: [RecordColumn]) {
    self.columns = columns
    required = columns.count { !$0.isOptional }
  }

  package static let all = ColumnList(RecordColumns.all)
  package static let ranking = ColumnList(RecordColumns.ranking)
}

extension Int {
  /// The number; `nil` for 0, because NULL takes no space.
  fileprivate var unlessZero: Int? { self == 0 ? nil : self }
}

extension DownloadRecord {
  /// The checkpoint's validator, created when a part of it is set.
  fileprivate var validator: Validator {
    get { checkpoint.validator ?? Validator() }
    set { checkpoint.validator = newValue }
  }
}

extension Collection {
  fileprivate var unlessEmpty: Self? { isEmpty ? nil : self }
}

package enum RecordColumns {
  /// Every column except `kind` and `opening`, which are the record's ``Lane``, and `owner` and `lease`.
  package static let all: [RecordColumn] = identity + state + request + added + checkpoint + steps

  private static let identity: [RecordColumn] = [
    .required("generation", [], { $0.generation }, { $0.generation = $1 }),
    .required("id", [], { key($0.request.id.rawValue) }, { $0.request.id = DownloadID($1) }),
    .required("arrival", [], { $0.arrival }, { $0.arrival = $1 }),
    .required("created_at", [], { $0.createdAt }, { $0.createdAt = $1 }),
    .required("updated_at", [], { $0.updatedAt }, { $0.updatedAt = $1 }),
  ]

  private static let state: [RecordColumn] = [
    .required("phase", .state, { $0.phase }, { $0.phase = $1 }),
    .optional("not_before", .state, { $0.notBefore }, { $0.notBefore = $1 }),
    .optional("attempts", .state, { $0.attempts.unlessZero }, { $0.attempts = $1 }),
    .optional(
      "consecutive_failures", .state, { $0.consecutiveFailures.unlessZero }, { $0.consecutiveFailures = $1 }),
    .optional("repeated_failures", .state, { $0.repeatedFailures.unlessZero }, { $0.repeatedFailures = $1 }),
    .optional("bytes_fetched", .state, { $0.bytesFetched == 0 ? nil : $0.bytesFetched }, { $0.bytesFetched = $1 }),
    .optional("resumed_from", .state, { $0.resumedFrom == 0 ? nil : $0.resumedFrom }, { $0.resumedFrom = $1 }),
    .optional(
      "paused_together", .state, { $0.isPausedTogether ? true : nil }, { $0.isPausedTogether = $1 }),
    .optional("was_interrupted", .state, { $0.wasInterrupted ? true : nil }, { $0.wasInterrupted = $1 }),
    .optional("awaited", .state, { $0.awaited }, { $0.awaited = $1 }),
    .json("error", .state, { $0.error }, { $0.error = $1 }),
    // Only changes of the request set it; an outcome clears it.
    .optional("is_outdated", [], { $0.isOutdated ? true : nil }, { $0.isOutdated = $1 }),
    .json(
      "earlier_artifact", .state, { EarlierArtifacts($0) },
      { ($0.earlierArtifact, $0.leftArtifacts) = ($1.artifact, $1.left) }),
  ]

  /// Host, priority, intent, tags and location are in the ``Kind``.
  private static let request: [RecordColumn] = [
    .required("url", .link, { $0.request.url }, { $0.request.url = $1 }),
    .repeatedJSON(
      "headers", .link, { $0.request.headers.fields.isEmpty ? nil : $0.request.headers },
      { $0.request.headers = $1 }),
    .json("head_start", .link, { $0.request.headStart }, { $0.request.headStart = $1 }),
    .optional(
      "is_named_by_server", [], { $0.request.isNamedByServer ? true : nil }, { $0.request.isNamedByServer = $1 }),
    .json("lineage", [], { $0.request.lineage }, { $0.request.lineage = $1 }),
    .required("rank", .link, { $0.rank }, { $0.rank = $1 }),
    .optional(
      "expected_size", [], { $0.request.expectedSize.bytes }, { $0.request.expectedSize = ByteCount($1) }),
    .optional("deadline", [], { $0.request.deadline }, { $0.request.deadline = $1 }),
    .repeatedJSON(
      "dependencies", [], { IDList($0.request.after) }, { $0.request.after = $1.ids }),
    .repeatedJSON("waits_for", [], { IDList($0.waitsFor) }, { $0.waitsFor = $1.ids }),
    .optional("size_hint", [], { $0.request.sizeHint.bytes }, { $0.request.sizeHint = ByteCount($1) }),
    .repeatedJSON(
      "step_selection", [], { $0.request.steps.names.map { $0.sorted() } }, { $0.request.steps = .only(Set($1)) }),
    .optional(
      "refresh", [], { $0.request.refresh == .never ? nil : $0.request.refresh }, { $0.request.refresh = $1 }),
    .optional("maximum_size", [], { $0.request.maximumSize }, { $0.request.maximumSize = $1 }),
    .optional(
      "directory", [], { $0.request.destination.directory }, { $0.request.destination.directory = $1 }),
    .optional("file_name", [], { $0.request.destination.name }, { $0.request.destination.name = $1 }),
    .optional(
      "name_is_fallback", [], { $0.request.destination.nameUse == .fallback ? true : nil },
      { $0.request.destination.nameUse = $1 ? .fallback : .order }),
    .optional(
      "mirrors", [], isJSON: true, { record in record.request.mirrors.unlessEmpty.map(URLList.init) },
      { $0.request.mirrors = $1.urls }),
    .json("metadata", [], { $0.request.metadata.unlessEmpty }, { $0.request.metadata = $1 }),
    .json(
      "expected_digests", [], { $0.request.expectedDigests.unlessEmpty },
      { $0.request.expectedDigests = $1 }),
    .json("pieces", [], { $0.request.pieces }, { $0.request.pieces = $1 }),
  ]

  private static let added: [RecordColumn] = [
    .json("added", .link, { $0.added }, { $0.added = $1 })
  ]

  private static let checkpoint: [RecordColumn] = [
    // For sums: the ranges say the same.
    .optional(
      "on_disk", .checkpoint, { $0.checkpoint.ranges.isEmpty ? nil : $0.checkpoint.ranges.byteCount }, { _, _ in }),
    .optional(
      "ranges", .checkpoint, { $0.checkpoint.ranges.isEmpty ? nil : $0.checkpoint.ranges },
      { $0.checkpoint.ranges = $1 }),
    .optional("total", .checkpoint, { $0.checkpoint.total.bytes }, { $0.checkpoint.total = ByteCount($1) }),
    .optional(
      "etag", .checkpoint, { $0.checkpoint.validator?.entityTag },
      { $0.validator.entityTag = $1 }),
    .optional(
      "last_modified", .checkpoint, { $0.checkpoint.validator?.lastModified },
      { $0.validator.lastModified = $1 }),
    .optional(
      "response_date", .checkpoint, { $0.checkpoint.validator?.responseDate },
      { $0.validator.responseDate = $1 }),
    .optional("resource", .checkpoint, { $0.checkpoint.resource }, { $0.checkpoint.resource = $1 }),
    .optional("content_coding", .checkpoint, { $0.checkpoint.contentCoding }, { $0.checkpoint.contentCoding = $1 }),
    .optional("suggested_name", .checkpoint, { $0.checkpoint.name }, { $0.checkpoint.name = $1 }),
    .optional("media_type", .checkpoint, { $0.checkpoint.mediaType }, { $0.checkpoint.mediaType = $1 }),
    .json("digests", .checkpoint, { $0.checkpoint.digests.unlessEmpty }, { $0.checkpoint.digests = $1 }),
    .optional("marks", .checkpoint, { $0.checkpoint.marks.unlessEmpty }, { $0.checkpoint.marks = $1 }),
    .optional(
      "is_complete", .checkpoint, { $0.checkpoint.isComplete ? true : nil }, { $0.checkpoint.isComplete = $1 }),
    .json("versions", .checkpoint, { VersionText($0.versions) }, { $0.versions = $1.log }),
    .optional("fresh_until", .checkpoint, { $0.checkpoint.freshUntil }, { $0.checkpoint.freshUntil = $1 }),
  ]

  private static let steps: [RecordColumn] = [
    .json("steps", .steps, { $0.steps.completed.unlessEmpty }, { $0.steps.completed = $1 }),
    .json("verified", .steps, { $0.steps.verified.unlessEmpty }, { $0.steps.verified = $1 }),
    .optional("refreshing", .steps, { $0.refreshing }, { $0.refreshing = $1 }),
    .optional("step_note", .steps, { $0.steps.note }, { $0.steps.note = $1 }),
    .optional(
      "artifact_kind", .steps, { $0.steps.artifact?.kind },
      { $0.steps.artifact = StoredArtifact(kind: $1, path: nil, name: "", size: nil, mediaType: nil) }),
    .optional("artifact_path", .steps, { $0.steps.artifact?.path }, { $0.steps.artifact?.path = $1 }),
    .optional("artifact_name", .steps, { $0.steps.artifact?.name }, { $0.steps.artifact?.name = $1 }),
    .optional("artifact_size", .steps, { $0.steps.artifact?.size }, { $0.steps.artifact?.size = $1 }),
    .optional("artifact_media_type", .steps, { $0.steps.artifact?.mediaType }, { $0.steps.artifact?.mediaType = $1 }),
    .optional(
      "artifact_modified_at", .steps, { $0.steps.artifact?.modifiedAt }, { $0.steps.artifact?.modifiedAt = $1 }),
    .optional(
      "artifact_is_reused", .steps, { $0.steps.artifact?.isReused == true ? true : nil },
      { $0.steps.artifact?.isReused = $1 }),
    .json(
      "artifact_companions", .steps, { $0.steps.artifact?.companions.unlessEmpty },
      { $0.steps.artifact?.companions = $1 }),
    .optional("artifact_location", .steps, { $0.steps.artifact?.location }, { $0.steps.artifact?.location = $1 }),
  ]

  // MARK: Parts of statements

  /// The columns that a save of the fields writes.
  package static func columns(_ fields: RecordFields) -> [RecordColumn] {
    all.filter { !$0.fields.isDisjoint(with: fields) }
  }

  package static func names(_ columns: [RecordColumn]) -> String { columns.map(\.name).joined(separator: ", ") }

  package static func assignments(_ columns: [RecordColumn]) -> String {
    columns.map { "\($0.name) = ?" }.joined(separator: ", ")
  }

  /// The columns that ``LedgerConnection/record(_:)`` reads.
  package static let list = names(all) + ", kind, owner"

  /// The columns that are written for a new record; the others are NULL.
  package static let new = identity + state.prefix { $0.name == "phase" } + request

  /// The columns that a ranking uses, and the rank.
  package static let ranking = all.filter { rankingNames.contains($0.name) }
  private static let rankingNames: Set<String> = [
    "generation", "id", "arrival", "created_at", "rank", "total", "expected_size", "size_hint", "deadline",
    "metadata",
  ]

  /// The columns of a request on which the work of a run, or the place of its file, depends; steps, mirrors and metadata,
  /// among which are settings of steps, are compared as text first.
  package static let work = request.filter { workNames.contains($0.name) }
  private static let workNames: Set<String> = [
    "url", "mirrors", "expected_size", "expected_digests", "pieces", "maximum_size", "step_selection",
    "metadata", "is_named_by_server", "directory", "file_name", "name_is_fallback",
  ]

  /// The columns that can change.
  package static let changing = all.filter { !["generation", "id", "arrival", "created_at"].contains($0.name) }

  /// An empty record, into which a row is read.
  package static let blank = DownloadRecord(
    request: DownloadRequest(URL(filePath: "/"), id: ""), generation: 0, arrival: 0, rank: Rank(),
    createdAt: Date(timeIntervalSince1970: 0))

  // MARK: Keys

  /// Returns the normalized form (NFC) in which ids and tags are stored: Swift compares strings by canonical
  /// equivalence, SQLite by bytes.
  package static func key(_ text: String) -> String {
    text.utf8.allSatisfy { $0 < 0x80 } ? text : text.precomposedStringWithCanonicalMapping
  }
}

/// The earlier artifact of a record, and the files left in other places. Earlier versions read only the former.
private struct EarlierArtifacts: Codable, Sendable {
  let artifact: StoredArtifact
  let left: [StoredArtifact]

  private enum CodingKeys: CodingKey { case left }

  init?(_ record: DownloadRecord) {
    guard let artifact = record.earlierArtifact else { return nil }
    (self.artifact, left) = (artifact, record.leftArtifacts)
  }

  init(from decoder: any Decoder) throws {
    artifact = try StoredArtifact(from: decoder)
    left = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent([StoredArtifact].self, forKey: .left) ?? []
  }

  func encode(to encoder: any Encoder) throws {
    try artifact.encode(to: encoder)
    var container = encoder.container(keyedBy: CodingKeys.self)
    if !left.isEmpty { try container.encode(left, forKey: .left) }
  }
}

/// The ids of other downloads in their stored form, stored as a JSON array of strings.
package struct IDList: Codable, Equatable, Sendable {
  package var ids: Set<DownloadID>

  /// - Returns: `nil` for no ids.
  package init?(_ ids: Set<DownloadID>) {
    if ids.isEmpty { return nil }
    self.ids = ids
  }

  package init(from decoder: any Decoder) throws {
    ids = try Set(decoder.singleValueContainer().decode([DownloadID].self))
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(ids.map { RecordColumns.key($0.rawValue) }.sorted())
  }
}

/// Mirrors, stored as a JSON array of strings.
private struct URLList: ColumnCodable {
  package var urls: [URL]
  package var columnValue: ColumnValue { get throws { try JSONText(urls.map(\.absoluteString)).columnValue } }
  package init(_ urls: [URL]) { self.urls = urls }
  package init?(columnValue: ColumnValue) {
    guard let texts = JSONText<[String]>(columnValue: columnValue)?.value else { return nil }
    urls = texts.compactMap { URL(string: $0) }
    if urls.count != texts.count { return nil }
  }
}
