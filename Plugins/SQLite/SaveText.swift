#if SQLite
  import DownpipeColumns
  @_spi(Ledger) import DownpipeCore
  import Synchronization

  /// The statement of a save, one for each set of fields. It changes no row unless the owner holds the record.
  struct SaveText: Sendable {
    let index: Int
    /// The columns to bind first, in this order; the time follows.
    let columns: [RecordColumn]
    let sql: String

    static let count = 64
    /// The texts that have been used: making all of them would take a millisecond of the start of a process.
    private static let known = Mutex([SaveText?](repeating: nil, count: count))

    /// Selects the statement that writes the fields.
    ///
    /// - Parameter keepsLease: Whether the record stays active.
    init(_ fields: RecordFields, keepsLease: Bool) {
      let givesBack = fields.contains(.state) && !keepsLease
      let index = fields.rawValue & 31 | (givesBack ? 32 : 0)
      self = Self.known.withLock { known in
        let text = known[index] ?? SaveText(index)
        known[index] = text
        return text
      }
    }

    private init(_ index: Int) {
      let fields = RecordFields(rawValue: index & 31)
      self.index = index
      columns = RecordColumns.columns(fields)
      var assignments = (columns.map(\.name) + ["updated_at"]).map { "\($0) = ?" }.joined(separator: ", ")
      if index & 32 != 0 { assignments += ", owner = NULL, lease = NULL, is_outdated = NULL" }
      if fields.contains(.link) { assignments += ", kind = ?" }
      sql = "UPDATE download SET \(assignments) WHERE generation = ? AND id = ? AND owner = ?"
    }
  }
#endif
