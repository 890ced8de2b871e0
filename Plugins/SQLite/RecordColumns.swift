#if SQLite
  import DownpipeCore
  import Foundation

  /// How a record becomes columns, and columns a record.
  enum RecordColumns {
    // MARK: The columns

    /// What was asked for, in the order of ``bind(_:host:from:to:)``.
    private static let requestColumns = [
      "url", "host", "priority", "intent", "expected_size", "maximum_size", "directory", "file_name", "mirrors",
      "metadata", "tags", "expected_digests", "headers", "head_start",
    ]

    static let request = requestColumns.joined(separator: ", ")

    /// Every column, in the order of ``record(_:)``.
    static let list =
      """
      id, generation, phase, rank, arrival, not_before, owner, attempts, consecutive_failures, bytes_fetched, \
      resumed_from, created_at, updated_at, error, \(request), ranges, total, etag, last_modified, response_date, \
      content_coding, suggested_name, media_type, is_complete, digests, steps_completed, step_note, artifact_kind, \
      artifact_path, artifact_name, artifact_size, artifact_media_type, marks, awaited, \
      resource, repeated_failures
      """

    /// What a record is left with when its bytes are gone.
    static let clearedProgress =
      """
      ranges = NULL, total = NULL, etag = NULL, last_modified = NULL, response_date = NULL, content_coding = NULL, \
      suggested_name = NULL, media_type = NULL, is_complete = 0, digests = NULL, steps_completed = NULL, \
      step_note = NULL, artifact_kind = NULL, artifact_path = NULL, artifact_name = NULL, artifact_size = NULL, \
      artifact_media_type = NULL, marks = NULL, resource = NULL
      """

    static func requestPlaceholders(from first: Int) -> String {
      requestColumns.indices.map { "?\(first + $0)" }.joined(separator: ", ")
    }

    static func requestAssignments(from first: Int) -> String {
      requestColumns.enumerated().map { "\($1) = ?\(first + $0)" }.joined(separator: ", ")
    }

    // MARK: Keys

    /// Swift's strings are equal when they look the same, SQLite's when their bytes are: ids and tags
    /// are kept in the one form that both agree on (NFC).
    static func key(_ text: String) -> String {
      text.utf8.allSatisfy { $0 < 0x80 } ? text : text.precomposedStringWithCanonicalMapping
    }

    // MARK: Binding

    /// Binds the columns of ``request`` from a position on.
    static func bind(_ request: DownloadRequest, from first: Int32, to statement: PreparedStatement) throws {
      statement.bind(request.url.absoluteString, first)
      statement.bind(request.host, first + 1)
      statement.bind(Int64(request.priority.rawValue), first + 2)
      statement.bind(request.intent == .userInitiated ? nil : request.intent.rawValue, first + 3)
      statement.bind(request.expectedSize, first + 4)
      statement.bind(request.maximumSize, first + 5)
      statement.bind(request.destination.directory, first + 6)
      statement.bind(request.destination.name, first + 7)
      statement.bind(request.mirrors.isEmpty ? nil : try json(request.mirrors.map(\.absoluteString)), first + 8)
      statement.bind(request.metadata.isEmpty ? nil : try json(request.metadata), first + 9)
      statement.bind(try tags(request.tags), first + 10)
      statement.bind(request.expectedDigests.isEmpty ? nil : try json(request.expectedDigests), first + 11)
      statement.bind(request.headers.isEmpty ? nil : try json(request.headers), first + 12)
      statement.bind(try request.headStart.map(json), first + 13)
    }

    /// Binds what an attempt changes of a request: four columns.
    static func bindLink(_ request: DownloadRequest, from first: Int32, to statement: PreparedStatement) throws {
      statement.bind(request.url.absoluteString, first)
      statement.bind(request.host, first + 1)
      statement.bind(request.headers.isEmpty ? nil : try json(request.headers), first + 2)
      statement.bind(try request.headStart.map(json), first + 3)
    }

    /// Binds what is on disk from a position on: ten columns.
    static func bind(_ checkpoint: Checkpoint, from first: Int32, to statement: PreparedStatement) throws {
      let ranges = checkpoint.ranges
      statement.bind(ranges.isEmpty ? nil : ranges.storedText, first)
      statement.bind(checkpoint.total.bytes, first + 1)
      statement.bind(checkpoint.validator?.entityTag?.field, first + 2)
      statement.bind(checkpoint.validator?.lastModified, first + 3)
      statement.bind(checkpoint.validator?.responseDate, first + 4)
      statement.bind(checkpoint.contentCoding, first + 5)
      statement.bind(checkpoint.name, first + 6)
      statement.bind(checkpoint.mediaType, first + 7)
      statement.bind(Int64(checkpoint.isComplete ? 1 : 0), first + 8)
      statement.bind(checkpoint.digests.isEmpty ? nil : try json(checkpoint.digests), first + 9)
    }

    static func tags(_ tags: Set<String>) throws -> String? {
      tags.isEmpty ? nil : try json(tags.map(key).sorted())
    }

    /// Binds what the steps have done from a position on: seven columns.
    static func bind(_ steps: StepLog, from first: Int32, to statement: PreparedStatement) throws {
      let artifact = steps.artifact
      statement.bind(steps.completed.isEmpty ? nil : try json(steps.completed), first)
      statement.bind(steps.note, first + 1)
      statement.bind(artifact?.kind.rawValue, first + 2)
      statement.bind(artifact?.path, first + 3)
      statement.bind(artifact?.name, first + 4)
      statement.bind(artifact?.size, first + 5)
      statement.bind(artifact?.mediaType, first + 6)
    }

    /// What a save of the fields writes; the values are at the positions that ``LedgerConnection`` binds.
    static func assignments(_ fields: RecordFields) -> String {
      var assignments = ["updated_at = ?4"]
      if fields.contains(.state) {
        assignments.append(
          """
          phase = ?5, not_before = ?6, error = ?7, attempts = ?8, consecutive_failures = ?9, bytes_fetched = ?10, \
          resumed_from = ?11, awaited = ?31, repeated_failures = ?32, \
          owner = CASE WHEN ?12 THEN owner END, lease = CASE WHEN ?12 THEN lease END
          """)
      }
      if fields.contains(.checkpoint) {
        assignments.append(
          """
          ranges = ?13, total = ?14, etag = ?15, last_modified = ?16, response_date = ?17, content_coding = ?18, \
          suggested_name = ?19, media_type = ?20, is_complete = ?21, digests = ?22, marks = ?30, \
          resource = ?33
          """)
      }
      if fields.contains(.steps) {
        assignments.append(
          """
          steps_completed = ?23, step_note = ?24, artifact_kind = ?25, artifact_path = ?26, artifact_name = ?27, \
          artifact_size = ?28, artifact_media_type = ?29
          """)
      }
      return assignments.joined(separator: ", ")
    }

    static func error(_ error: DownloadError?) throws -> String? { try error.map(json) }

    private static func json(_ value: some Encodable) throws -> String {
      String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
    }

    // MARK: Reading

    /// The record in the present row of a statement that selects ``list``.
    static func record(_ row: PreparedStatement) throws -> DownloadRecord {
      let id = row.text(0)

      func damaged(_ column: String) -> DownloadError { LedgerFault.damagedRecord(id, column) }
      func value<Value: Decodable>(_ column: Int32, _ name: String, or empty: Value) throws -> Value {
        guard let text = row.optionalText(column) else { return empty }
        do {
          return try JSONDecoder().decode(Value.self, from: Data(text.utf8))
        } catch { throw damaged(name) }
      }

      guard let url = URL(string: row.text(14)) else { throw damaged("url") }
      var request = DownloadRequest(
        url, id: DownloadID(id), priority: Priority(Int16(clamping: row.int64(16))), intent: intent(row, 17),
        expectedSize: row.optionalInt64(18), maximumSize: row.optionalInt64(19),
        destination: .init(directory: row.optionalText(20), name: row.optionalText(21)))
      if !row.isNull(22) {
        request.mirrors = try value(22, "mirrors", or: [String]()).map { text in
          guard let url = URL(string: text) else { throw damaged("mirrors") }
          return url
        }
      }
      if !row.isNull(23) { request.metadata = try value(23, "metadata", or: [:]) }
      if !row.isNull(24) { request.tags = Set(try value(24, "tags", or: [String]())) }
      if !row.isNull(25) { request.expectedDigests = try value(25, "expected_digests", or: []) }
      if !row.isNull(26) { request.headers = try value(26, "headers", or: []) }
      if !row.isNull(27) { request.headStart = try value(27, "head_start", or: nil) }

      var record = DownloadRecord(
        request: request, generation: row.int64(1), arrival: row.int64(4), rank: Rank(value: row.uint128(3)),
        createdAt: row.date(11))
      guard let phase = DownloadState.Phase(rawValue: row.text(2)) else { throw damaged("phase") }
      record.phase = phase
      record.notBefore = row.optionalDate(5)
      record.owner = row.optionalText(6)
      record.attempts = Int(row.int64(7))
      record.consecutiveFailures = Int(row.int64(8))
      record.bytesFetched = row.int64(9)
      record.resumedFrom = row.int64(10)
      record.updatedAt = row.date(12)
      if !row.isNull(13) { record.error = try value(13, "error", or: nil) }

      if let text = row.optionalText(28) {
        guard let ranges = ByteRangeSet(storedText: text) else { throw damaged("ranges") }
        record.checkpoint.ranges = ranges
      }
      record.checkpoint.total = ByteCount(row.optionalInt64(29))
      record.checkpoint.validator = validator(row)
      record.checkpoint.contentCoding = row.optionalText(33)
      record.checkpoint.name = row.optionalText(34)
      record.checkpoint.mediaType = row.optionalText(35)
      record.checkpoint.isComplete = row.int64(36) != 0
      if !row.isNull(37) { record.checkpoint.digests = try value(37, "digests", or: []) }
      record.steps.completed = (try? value(38, "steps_completed", or: [String]())) ?? []
      record.steps.note = row.optionalText(39)
      if let kind = row.optionalText(40) {
        guard let kind = Artifact.Kind(rawValue: kind) else { throw damaged("artifact_kind") }
        record.steps.artifact = StoredArtifact(
          kind: kind, path: row.optionalText(41), name: row.text(42), size: row.optionalInt64(43),
          mediaType: row.optionalText(44))
      }
      if let text = row.optionalText(45) {
        guard let marks = BlockMarkText.marks(text) else { throw damaged("marks") }
        record.checkpoint.marks = marks
      }
      record.awaited = row.optionalText(46).flatMap(Awaited.init)
      record.checkpoint.resource = row.optionalText(47)
      record.repeatedFailures = Int(clamping: row.int64(48))
      return record
    }

    /// What claims look at, in the present row of a statement that selects ``list``.
    static func candidate(_ row: PreparedStatement) throws -> Candidate {
      let id = row.text(0)
      return Candidate(
        host: row.text(15), intent: intent(row, 17),
        priority: Priority(Int16(clamping: row.int64(16))), tags: try tags(row.optionalText(24), of: id))
    }

    static func intent(_ row: PreparedStatement, _ column: Int32) -> Intent {
      row.optionalText(column).map(Intent.init) ?? .userInitiated
    }

    /// A list of tags, as ``tags(_:)`` wrote it.
    static func tags(_ text: String?, of id: String) throws -> Set<String> {
      guard let text else { return [] }
      do {
        return Set(try JSONDecoder().decode([String].self, from: Data(text.utf8)))
      } catch { throw LedgerFault.damagedRecord(id, "tags") }
    }

    private static func validator(_ row: PreparedStatement) -> Validator? {
      let validator = Validator(
        entityTag: row.optionalText(30).map(entityTag), lastModified: row.optionalDate(31),
        responseDate: row.optionalDate(32))
      return validator == Validator() ? nil : validator
    }

    /// Reads what `EntityTag.field` wrote, however odd the tag is.
    private static func entityTag(_ field: String) -> EntityTag {
      let isWeak = field.utf8.starts(with: "W/\"".utf8)
      let bytes = field.utf8.dropFirst(isWeak ? 3 : 1).dropLast()
      return EntityTag(String(decoding: Array(bytes), as: UTF8.self), isWeak: isWeak)
    }
  }
#endif
