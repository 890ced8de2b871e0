#if Postgres
  import CPostgres
  import Foundation

  /// A connection to a PostgreSQL server, by libpq's calls that do not block: each wait ends with its limit, or when the
  /// store is closed.
  ///
  /// Used by one thread at a time, which it blocks while the server works.
  final class PostgresConnection {
    /// Where the server is, and how long to wait for it.
    struct Settings: Sendable {
      /// A connection URI or a string of keywords and values, as libpq understands them: several hosts, service files,
      /// `~/.pgpass`, the variables `PG…` and all options of TLS included.
      var address: String
      /// How long a connection may take to open.
      var openingLimit: Duration = .seconds(30)
      /// How long a statement may take. The server ends it then.
      var statementLimit: Duration = .seconds(60)
    }

    /// How much later than the server this side gives up: by then the server is gone, or the network.
    private static let grace: Duration = .seconds(15)
    /// The largest number of prepared statements. The texts of this program are fewer, but for bulk commands by filter.
    private static let mostPrepared = 300

    private let settings: Settings
    private let interruption: Interruption
    private let handle: OpaquePointer
    /// The names of the prepared statements, by their texts.
    private var prepared: [String: String] = [:]
    /// Whether an answer is missing: the connection cannot be used any more.
    private(set) var isLost = false

    /// Opens a connection.
    /// - Throws: ``PostgresFault``.
    init(_ settings: Settings, interruptedBy interruption: Interruption) throws(PostgresFault) {
      self.settings = settings
      self.interruption = interruption
      // What precedes the address is a default, what follows it is not.
      let keywords = ["application_name", "connect_timeout", "dbname", "client_encoding"]
      let seconds = max(2, Int((settings.openingLimit / .seconds(1)).rounded(.up)))
      let values = ["downpipe", "\(seconds)", settings.address, "UTF8"]
      let opened = Self.withPointers(keywords) { keywords in
        Self.withPointers(values) { PQconnectStartParams(keywords, $0, 1) }
      }
      guard let opened else { throw PostgresFault(.unreachable, "there is no memory for a connection") }
      handle = opened
      try open()
    }

    deinit { PQfinish(handle) }

    private static func withPointers<Result>(
      _ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result
    ) -> Result {
      let copies = texts.map { strdup($0) }
      defer { for copy in copies { free(copy) } }
      return (copies.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer { body($0.baseAddress) }
    }

    // MARK: Opening

    private func open() throws(PostgresFault) {
      let deadline = ContinuousClock.now + settings.openingLimit
      var next = PGRES_POLLING_WRITING
      while next != PGRES_POLLING_OK {
        if next == PGRES_POLLING_FAILED || PQstatus(handle) == CONNECTION_BAD { throw lost() }
        try wait(toWrite: next == PGRES_POLLING_WRITING, until: deadline)
        next = PQconnectPoll(handle)
      }
      // Notices are for people; by default they go to the standard error.
      PQsetNoticeReceiver(handle, { _, _ in }, nil)
      guard PQsetnonblocking(handle, 1) == 0 else { throw lost() }
      let limit = Int(settings.statementLimit / .milliseconds(1))
      for setting in [
        "statement_timeout = \(limit)", "idle_in_transaction_session_timeout = \(2 * limit)",
        "standard_conforming_strings = on", "bytea_output = hex", "timezone = 'UTC'",
      ] {
        _ = try run("SET " + setting, prepares: false)
      }
    }

    // MARK: Statements

    /// Runs a statement and returns its rows.
    ///
    /// - Parameter prepares: Whether the server keeps the plan, for statements that are run often.
    /// - Throws: ``PostgresFault``.
    func run(
      _ sql: String, _ values: [PostgresValue] = [], prepares: Bool = true
    ) throws(PostgresFault) -> PostgresRows {
      guard !isLost else { throw PostgresFault(.unreachable, "the connection was lost") }
      let deadline = ContinuousClock.now + settings.statementLimit + Self.grace
      let parameters = try PostgresParameters(values)
      if prepares, let name = try prepare(sql, until: deadline) {
        try send(until: deadline) {
          parameters.with { PQsendQueryPrepared(handle, name, Int32(values.count), $0, $1, $2, 0) }
        }
      } else {
        try send(until: deadline) {
          parameters.with { PQsendQueryParams(handle, sql, Int32(values.count), nil, $0, $1, $2, 0) }
        }
      }
      return PostgresRows(try result(until: deadline))
    }

    /// - Returns: The name of the prepared statement; `nil` if there are too many.
    private func prepare(_ sql: String, until deadline: ContinuousClock.Instant) throws(PostgresFault) -> String? {
      if let known = prepared[sql] { return known }
      guard prepared.count < Self.mostPrepared else { return nil }
      let name = "s\(prepared.count)"
      try send(until: deadline) { PQsendPrepare(handle, name, sql, 0, nil) }
      PQclear(try result(until: deadline))
      prepared[sql] = name
      return name
    }

    private func send(until deadline: ContinuousClock.Instant, _ call: () -> CInt) throws(PostgresFault) {
      guard call() == 1 else { throw lost() }
      while true {
        let left = PQflush(handle)
        if left == 0 { return }
        guard left == 1 else { throw lost() }
        try wait(toWrite: true, until: deadline)
        // The server may not read before its answer is read.
        guard PQconsumeInput(handle) == 1 else { throw lost() }
      }
    }

    /// Reads all results up to the end of the statement.
    /// - Returns: The last one, which the caller frees.
    private func result(until deadline: ContinuousClock.Instant) throws(PostgresFault) -> OpaquePointer {
      var last: OpaquePointer?
      var failure: PostgresFault?
      while true {
        while PQisBusy(handle) == 1 {
          do throws(PostgresFault) {
            try wait(until: deadline)
            guard PQconsumeInput(handle) == 1 else { throw lost() }
          } catch {
            PQclear(last)
            throw error
          }
        }
        guard let next = PQgetResult(handle) else { break }
        PQclear(last)
        last = next
        switch PQresultStatus(next) {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK: continue
        case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
          // There would be no end of results.
          PQclear(next)
          isLost = true
          throw PostgresFault(.refused, "the statement copies rows")
        default: failure = failure ?? fault(of: next)
        }
      }
      if PQstatus(handle) == CONNECTION_BAD { isLost = true }
      if let failure {
        PQclear(last)
        throw failure
      }
      guard let last else { throw lost() }
      return last
    }

    private func fault(of result: OpaquePointer) -> PostgresFault {
      let message = PQresultErrorField(result, CInt(Unicode.Scalar("M").value)).map { String(cString: $0) }
      // The field “C” is the code; an error without one is of the connection.
      guard let state = PQresultErrorField(result, CInt(Unicode.Scalar("C").value)) else {
        return lost()
      }
      return PostgresFault(state: String(cString: state), message ?? "")
    }

    /// Marks the connection as lost, and returns why.
    private func lost() -> PostgresFault {
      isLost = true
      let message = PQerrorMessage(handle).map { String(cString: $0) } ?? ""
      return PostgresFault(.unreachable, message.isEmpty ? "the connection was lost" : message)
    }

    private func wait(
      toWrite: Bool = false, until deadline: ContinuousClock.Instant
    ) throws(PostgresFault) {
      let socket = PQsocket(handle)
      guard socket >= 0 else { throw lost() }
      switch interruption.wait(for: socket, toWrite: toWrite, until: deadline) {
      case .ready: return
      case .interrupted:
        isLost = true
        throw PostgresFault(.interrupted, "the ledger has been closed")
      case .timedOut:
        isLost = true
        throw PostgresFault(.unreachable, "the server has not answered in time")
      }
    }

    // MARK: Transactions

    /// Performs statements in a transaction, which ends with an error of theirs.
    ///
    /// - Throws: ``PostgresFault``, with `.commitUnknown` if the answer to the commit is missing, and errors of `body`.
    func transaction<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value {
      _ = try run("BEGIN")
      let value: Value
      do {
        value = try body(self)
      } catch {
        if !isLost { _ = try? run("ROLLBACK") }
        // What would follow would be part of it.
        if PQtransactionStatus(handle) != PQTRANS_IDLE { isLost = true }
        throw error
      }
      let rows: PostgresRows
      do {
        rows = try run("COMMIT")
      } catch {
        guard isLost else { throw error }
        throw PostgresFault(.commitUnknown, error.message)
      }
      // A transaction that has failed answers a commit with a rollback.
      guard rows.tag == "COMMIT" else { throw PostgresFault(.refused, "the transaction had failed") }
      return value
    }

    // MARK: Between statements

    /// Whether the server has not ended the connection while it was idle.
    var isAlive: Bool {
      guard !isLost else { return false }
      // A server that ends sends why, and then the end.
      while !isLost, case .ready = interruption.wait(for: PQsocket(handle), until: .now) {
        if PQconsumeInput(handle) != 1 { isLost = true }
      }
      if PQstatus(handle) == CONNECTION_BAD { isLost = true }
      return !isLost
    }

    /// Waits for notifications of the channels that this connection listens to.
    ///
    /// - Returns: The names of their channels; empty after the time.
    /// - Throws: ``PostgresFault``.
    func notifications(within time: Duration) throws(PostgresFault) -> [String] {
      guard !isLost else { throw PostgresFault(.unreachable, "the connection was lost") }
      let deadline = ContinuousClock.now + time
      while true {
        var channels: [String] = []
        while let notification = PQnotifies(handle) {
          channels.append(String(cString: notification.pointee.relname))
          PQfreemem(notification)
        }
        if !channels.isEmpty { return channels }
        let socket = PQsocket(handle)
        guard socket >= 0 else { throw lost() }
        switch interruption.wait(for: socket, until: deadline) {
        case .timedOut: return []
        case .interrupted: throw PostgresFault(.interrupted, "the ledger has been closed")
        case .ready: guard PQconsumeInput(handle) == 1 else { throw lost() }
        }
      }
    }
  }
#endif
