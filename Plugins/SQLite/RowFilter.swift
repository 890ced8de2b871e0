#if SQLite
  import DownpipeColumns
  import DownpipeCore

  /// A ``DownloadFilter`` as SQL for the rows of `download`.
  ///
  /// Host, intent and location are stored once for each kind, so the filter finds the kinds first and compares numbers
  /// in the rows. A statement begins with ``prefix``, and its first parameters are those of ``bind(to:)``.
  struct RowFilter {
    private let filter: DownloadFilter
    /// Whether the result is in order of the last change. An index has this order, so that a page is found without reading
    /// all matching rows.
    private let isByChange: Bool

    init(_ filter: DownloadFilter, isByChange: Bool = false) {
      self.isByChange = isByChange
      self.filter = filter
    }

    /// The phases of the rows.
    var phases: [DownloadState.Phase] {
      DownloadState.Phase.allCases.filter { filter.phases?.contains($0) ?? true }
    }

    /// Whether the rows are found by a tag or by their ids.
    var isListed: Bool { filter.tag != nil || filter.ids != nil }
    /// Whether rows are found by their kinds.
    var hasKinds: Bool { namesKinds || filter.location != nil }
    /// Whether probably only some of the kinds match. Most kinds match a location.
    var namesKinds: Bool { filter.host != nil || filter.intent != nil }

    /// The beginning of a statement: the tables `tagged` and `named` of generations and the table `wanted` of kinds, as
    /// needed.
    var prefix: String {
      var kinds: [String] = []
      if filter.host != nil { kinds.append("host = ?") }
      if filter.intent != nil { kinds.append("intent = ?") }
      if filter.location != nil { kinds.append("(location IS NULL OR location = ?)") }
      var tables: [String] = []
      if filter.tag != nil { tables.append("tagged(generation) AS (SELECT generation FROM tag WHERE tag = ?)") }
      if filter.ids != nil {
        // The parameter is a JSON array. CROSS JOIN makes SQLite look up each of its ids.
        tables.append(
          "named(generation) AS (SELECT generation FROM json_each(?) AS name CROSS JOIN download "
            + "ON download.id = name.value)")
      }
      if !kinds.isEmpty {
        tables.append("wanted(number) AS (SELECT number FROM kind WHERE \(kinds.joined(separator: " AND ")))")
      }
      return tables.isEmpty ? "" : "WITH \(tables.joined(separator: ", ")) "
    }

    /// Binds the parameters of ``prefix``.
    func bind(to statement: PreparedStatement) throws {
      if let tag = filter.tag { statement.bind(RecordColumns.key(tag)) }
      if let ids = filter.ids {
        statement.bind(try JSONText(ids.map { RecordColumns.key($0.rawValue) }).columnValue)
      }
      if let host = filter.host { statement.bind(host) }
      if let intent = filter.intent { statement.bind(RecordColumns.key(intent.rawValue)) }
      if let location = filter.location { statement.bind(location) }
    }

    /// The condition for rows of wanted kinds, to be added to another one.
    ///
    /// The plus signs here and below keep SQLite, which has no statistics, from choosing another index.
    var isWanted: String { hasKinds ? " AND +kind IN (SELECT number FROM wanted)" : "" }

    /// The `FROM` and `WHERE` clauses that find the matching rows in a phase through indexes.
    func places(of phase: DownloadState.Phase) -> [(from: String, where: String)] {
      if isListed { return [("download", "+phase = '\(phase.rawValue)' AND \(isInList)\(isWanted)")] }
      return LedgerConnection.places(of: phase).map { place in
        let readsLanes = namesKinds && place.from.hasSuffix("download_ready")
        if namesKinds, !isByChange, place.from.hasSuffix("download_resting") {
          return ("download INDEXED BY download_kind", "\(place.where) AND kind IN (SELECT number FROM wanted)")
        }
        return (place.from, place.where + (readsLanes ? Self.isInWantedLane : isWanted))
      }
    }

    /// Selects columns of the matching rows.
    func select(_ columns: String) -> String {
      if isListed {
        let list = phases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        let isInPhase = filter.phases == nil ? "" : " AND +phase IN (\(list))"
        return "SELECT \(columns) FROM download WHERE \(isInList)\(isInPhase)\(isWanted)"
      }
      let places = phases.flatMap(places)
      if places.isEmpty { return "SELECT \(columns) FROM download WHERE FALSE" }
      // Each phase has a `SELECT` of its own, so that SQLite uses the phase's index.
      return places.map { "SELECT \(columns) FROM \($0.from) WHERE \($0.where)" }.joined(separator: " UNION ALL ")
    }

    /// The condition for rows in the lists of generations. The rows of the first list are read: of the ids, if any.
    private var isInList: String {
      let tables = [filter.ids.map { _ in "named" }, filter.tag.map { _ in "tagged" }].compactMap { $0 }
      return tables.enumerated().map { index, table in
        "\(index == 0 ? "" : "+")generation IN (SELECT generation FROM \(table))"
      }.joined(separator: " AND ")
    }

    /// The condition for rows in the lanes of the wanted kinds. `download_ready` begins with opening and kind, so that
    /// the other lanes are not read. There are few openings; each is found by one look-up, from the one before.
    private static let isInWantedLane = """
       AND opening IN (
        WITH RECURSIVE opened(number) AS (
          SELECT min(opening) FROM \(ready) UNION ALL
          SELECT (SELECT min(opening) FROM \(ready) AND opening >= number + 1) FROM opened
          WHERE typeof(number) = 'integer')
        SELECT number FROM opened)
      AND kind IN (SELECT number FROM wanted)
      """
    private static let ready =
      "download INDEXED BY download_ready WHERE \(StatementText.isReady)"
  }
#endif
