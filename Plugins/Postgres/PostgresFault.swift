#if Postgres
  import DownpipeColumns
  import DownpipeCore

  /// An error of the server, or of the connection to it.
  struct PostgresFault: Error, Hashable {
    enum Kind: Hashable, Sendable {
      /// There is no connection: the server cannot be reached, refuses it, or has ended it.
      case unreachable
      /// The connection was lost, or the server has not answered in time, while a transaction was being committed: it
      /// may have been.
      case commitUnknown
      /// The server cannot carry out the statement.
      case refused
      /// Another transaction was in the way: the whole transaction can be tried again.
      case conflict
      /// The store was closed meanwhile.
      case interrupted
    }

    var kind: Kind
    /// In one line, without passwords; see ``PostgresAddress/mayBeMisread``.
    var message: String
    /// The server's code, such as `57014`; `nil` if the error is not the server's.
    var state: String?

    init(_ kind: Kind, _ message: String, state: String? = nil) {
      (self.kind, self.state) = (kind, state)
      let words = message.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      self.message = String(words.prefix(500))
    }

    /// An error of the server with a code (SQLSTATE, appendix A of PostgreSQL's manual).
    init(state: String, _ message: String) {
      let kind: Kind =
        switch state {
        // Serialization failure and deadlock; a lock that was not got in time.
        case "40001", "40P01", "55P03": .conflict
        // The server shuts down, has crashed, or is starting.
        case "57P01", "57P02", "57P03": .unreachable
        case _ where state.hasPrefix("08"): .unreachable
        default: .refused
        }
      self.init(kind, message, state: state)
    }

    /// The error for the caller of the ledger.
    static func translate(_ failure: any Error) -> any Error {
      switch failure {
      case let fault as PostgresFault: fault.downloadError
      case let refused as RefusedChange: refused.error
      case let damaged as DamagedRow:
        DownloadError(
          .ledger, "the ledger's record of “\(damaged.id.rawValue.prefix(300))” is damaged: \(damaged.reason)",
          stage: stage)
      default: failure
      }
    }

    static let closed = PostgresFault(.interrupted, "the ledger has been closed")
    static let stage = "PostgresLedger"

    /// The error for the caller of the ledger, which says what to do.
    var downloadError: DownloadError {
      let advice =
        switch (kind, state) {
        case (.interrupted, _): "the ledger has been closed: open it again"
        case (.commitUnknown, _):
          "the connection to the database was lost during a commit, which may have taken effect: try again (\(message))"
        case (.conflict, _): "the database was busy with the same downloads: try again (\(message))"
        case (_, "42501"): "the user may not do this in the database: grant the rights (\(message))"
        case (_, "53100"): "the disk of the database server is full: free some space (\(message))"
        case (_, "53300"): "the database server has no more connections: raise max_connections (\(message))"
        case (_, "25006"): "the database is read-only: is this a standby server? (\(message))"
        case (_, "57014"): "a statement took longer than its limit: raise the limit, or look for locks (\(message))"
        // While a connection is opened, libpq does not tell the code.
        case (.unreachable, _):
          "the database cannot be reached: check that the server runs, the address, the user and its password, and that "
            + "the database exists (\(message))"
        case (.refused, _): "the database has failed: \(message)"
        }
      return DownloadError(.ledger, advice, stage: Self.stage, cause: self)
    }
  }
#endif
