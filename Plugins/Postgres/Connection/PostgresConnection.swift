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
      /// The schema in which the names of tables are looked up; the server's own setting if `nil`.
      var schema: String?
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
    /// How long this side waits for statements that must not take as long as others; `nil` for the usual time.
    var shortLimit: Duration?
    private let interruption: Interruption
    private let handle: OpaquePointer
    /// The names of the prepared statements, by their texts.
    private var prepared: [String: String] = [:]
    /// Whether an answer is missing: the connection cannot be used any more.
    private(set) var isLost = false

    /// - Parameter host: Keywords and values of one host of the address.
    private init(
      _ settings: Settings, _ address: PostgresAddress, _ host: [(String, String)], within limit: Duration,
      interruptedBy interruption: Interruption
    ) throws(PostgresFault) {
      self.settings = settings
      self.interruption = interruption
      // What precedes the address is a default, what follows it is not.
      let parameters = [("application_name", "downpipe")] + host + [("client_encoding", "UTF8")]
      // The name of a database may look like an address.
      let isAddress: CInt = address.hosts.count == 1 ? 1 : 0
      let opened = Self.withPointers(parameters.map(\.0)) { keywords in
        Self.withPointers(parameters.map(\.1)) { PQconnectStartParams(keywords, $0, isAddress) }
      }
      guard let opened else { throw PostgresFault(.unreachable, "there is no memory for a connection") }
      handle = opened
      do { try open(within: limit) } catch {
        guard error.kind == .unreachable, address.mayBeMisread else { throw error }
        throw PostgresFault(.unreachable, PostgresAddress.advice)
      }
    }

    /// Opens a connection to the first host of the address that accepts one.
    ///
    /// Each host has its share of the time: one that does not answer must not keep this side from the next one, which
    /// libpq leaves to its calls that block. Names of hosts are looked up by the system, which may take longer.
    /// - Throws: ``PostgresFault``, the last one of several.
    static func open(
      _ settings: Settings, interruptedBy interruption: Interruption
    ) throws(PostgresFault) -> PostgresConnection {
      let address = try PostgresAddress(settings.address)
      let limit = settings.openingLimit / address.hosts.count
      var last = PostgresFault(.unreachable, "the address has no host")
      for host in address.hosts {
        do throws(PostgresFault) {
          return try PostgresConnection(settings, address, host, within: limit, interruptedBy: interruption)
        } catch {
          if error.kind == .interrupted { throw error }
          last = error
        }
      }
      throw last
    }

    deinit { PQfinish(handle) }

    /// The descriptor of the socket; negative if there is none.
    var socket: CInt { PQsocket(handle) }

    private static func withPointers<Result>(
      _ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result
    ) -> Result {
      let copies = texts.map { strdup($0) }
      defer { for copy in copies { free(copy) } }
      return (copies.map { UnsafePointer($0) } + [nil]).withUnsafeBufferPointer { body($0.baseAddress) }
    }

    // MARK: Opening

    private func open(within limit: Duration) throws(PostgresFault) {
      let deadline = ContinuousClock.now + limit
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
      var texts = [
        "standard_conforming_strings = on", "bytea_output = hex", "timezone = 'UTC'",
        // Each statement sees what was committed before it began, also behind a lock.
        "default_transaction_isolation = 'read committed'",
        // Statements read few rows. Compiling one takes longer than most of them.
        "jit = off",
      ]
      // So that the server ends the statement of a program that is gone, with its locks (since version 14).
      if PQserverVersion(handle) >= 140_000 { texts.append("client_connection_check_interval = '10s'") }
      if let schema = settings.schema { texts.append("search_path = \(Schema.quoted(schema))") }
      texts.append("idle_in_transaction_session_timeout = \(2 * limit)")
      // Last, because it holds for what follows.
      texts.append("statement_timeout = \(limit)")
      for text in texts { _ = try run("SET " + text, prepares: false) }
    }

    // MARK: Statements

    /// Runs a statement and returns its rows.
    ///
    /// - Parameter prepares: Whether the server keeps the plan, for statements that are run often.
    /// - Throws: ``PostgresFault``.
    func run(
      _ sql: String, _ values: [PostgresValue] = [], prepares: Bool = true
    ) throws(PostgresFault) -> PostgresRows {
      try checkUsable()
      let deadline = deadline
      let parameters = try PostgresParameters(values)
      if prepares, let name = try prepare(sql, until: deadline) {
        try send(until: deadline) {
          parameters.with { PQsendQueryPrepared(handle, name, parameters.count, $0, $1, $2, 0) }
        }
      } else {
        try send(until: deadline) {
          parameters.with { PQsendQueryParams(handle, sql, parameters.count, nil, $0, $1, $2, 0) }
        }
      }
      return PostgresRows(try result(until: deadline))
    }

    /// When this side gives up a statement that begins now.
    private var deadline: ContinuousClock.Instant {
      .now + (shortLimit ?? settings.statementLimit + Self.grace)
    }

    /// The bytes that are given to libpq at once.
    private static let copyChunk = 1 << 18

    /// Runs a `COPY … FROM STDIN` with rows in its text format.
    ///
    /// - Throws: ``PostgresFault``.
    func copy(_ sql: String, _ rows: [UInt8]) throws(PostgresFault) {
      try checkUsable()
      let deadline = deadline
      try send(until: deadline) { PQsendQuery(handle, sql) }
      try beginCopy(until: deadline)
      var rest = rows[...]
      while !rest.isEmpty {
        let chunk = rest.prefix(Self.copyChunk)
        try put(until: deadline) {
          chunk.withUnsafeBytes {
            PQputCopyData(handle, $0.baseAddress?.assumingMemoryBound(to: CChar.self), CInt($0.count))
          }
        }
        rest = rest.dropFirst(chunk.count)
      }
      try put(until: deadline) { PQputCopyEnd(handle, nil) }
      try flush(until: deadline)
      PQclear(try result(until: deadline))
    }

    /// Waits until the server asks for rows.
    private func beginCopy(until deadline: ContinuousClock.Instant) throws(PostgresFault) {
      try waitForResult(until: deadline)
      guard let first = PQgetResult(handle) else { throw lost() }
      defer { PQclear(first) }
      guard PQresultStatus(first) != PGRES_COPY_IN else { return }
      guard PQresultStatus(first) == PGRES_FATAL_ERROR else {
        // What follows may have no end.
        isLost = true
        throw PostgresFault(.refused, "the statement copies no rows")
      }
      let fault = fault(of: first)
      while true {
        try waitForResult(until: deadline)
        guard let next = PQgetResult(handle) else { throw fault }
        PQclear(next)
      }
    }

    /// Waits until there is a result, or the statement has no more.
    private func waitForResult(until deadline: ContinuousClock.Instant) throws(PostgresFault) {
      while PQisBusy(handle) == 1 {
        try wait(until: deadline)
        try consume()
      }
    }

    /// Gives libpq something to send, as soon as there is room.
    private func put(until deadline: ContinuousClock.Instant, _ call: () -> CInt) throws(PostgresFault) {
      while true {
        switch call() {
        case 1: return
        case 0:
          try wait(toWrite: true, until: deadline)
          try consume()
        default: throw lost()
        }
      }
    }

    /// - Throws: ``PostgresFault`` if the connection was lost or the store closed: nothing is sent then.
    private func checkUsable() throws(PostgresFault) {
      guard !isLost else { throw PostgresFault(.unreachable, "the connection was lost") }
      guard !interruption.hasFired else { throw .closed }
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
      try flush(until: deadline)
    }

    /// Sends what libpq has been given.
    private func flush(until deadline: ContinuousClock.Instant) throws(PostgresFault) {
      while true {
        let left = PQflush(handle)
        if left == 0 { return }
        guard left == 1 else { throw lost() }
        try wait(toWrite: true, until: deadline)
        // The server may not read before its answer is read.
        try consume()
      }
    }

    /// Reads what has arrived.
    ///
    /// Twice, because libpq reads into the room that it has, which may be half of a record of TLS: the other half waits in
    /// the TLS library, where no socket tells of it.
    private func consume() throws(PostgresFault) {
      guard PQconsumeInput(handle) == 1, PQisBusy(handle) == 0 || PQconsumeInput(handle) == 1 else { throw lost() }
    }

    /// Reads all results up to the end of the statement.
    /// - Returns: The last one, which the caller frees.
    private func result(until deadline: ContinuousClock.Instant) throws(PostgresFault) -> OpaquePointer {
      var last: OpaquePointer?
      var failure: PostgresFault?
      while true {
        do throws(PostgresFault) { try waitForResult(until: deadline) } catch {
          PQclear(last)
          throw error
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
      let fault = PostgresFault(state: String(cString: state), message ?? "")
      // The prepared statements are gone, or their tables have changed: a new connection prepares them again.
      if ["26000", "42P05", "0A000"].contains(fault.state) { isLost = true }
      return fault
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
        throw .closed
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
      do { try checkUsable() } catch {
        isLost = true
        throw error
      }
      let rows: PostgresRows
      do {
        rows = try run("COMMIT", prepares: false)
      } catch {
        guard isLost else { throw error }
        throw PostgresFault(.commitUnknown, error.message)
      }
      // A transaction that has failed answers a commit with a rollback.
      guard rows.tag == "COMMIT" else { throw PostgresFault(.refused, "the transaction had failed") }
      return value
    }

    // MARK: Between statements

    /// Waits for some time, or until the store is closed. Blocks the thread.
    func pause(for time: Duration) { interruption.pause(for: time) }

    /// Whether the server has not ended the connection while it was idle.
    var isAlive: Bool {
      guard !isLost else { return false }
      // A server that ends sends why, and then the end.
      while !isLost, case .ready = interruption.wait(for: PQsocket(handle), until: .now) {
        if (try? consume()) == nil { isLost = true }
      }
      if PQstatus(handle) == CONNECTION_BAD { isLost = true }
      return !isLost
    }

    /// Waits for notifications of the channels that this connection listens to.
    ///
    /// - Returns: Their channels and texts; empty after the time.
    /// - Throws: ``PostgresFault``.
    func notifications(within time: Duration) throws(PostgresFault) -> [(channel: String, text: String)] {
      try checkUsable()
      let deadline = ContinuousClock.now + time
      while true {
        var all: [(channel: String, text: String)] = []
        while let notification = PQnotifies(handle) {
          all.append((String(cString: notification.pointee.relname), String(cString: notification.pointee.extra)))
          PQfreemem(notification)
        }
        if !all.isEmpty { return all }
        let socket = PQsocket(handle)
        guard socket >= 0 else { throw lost() }
        switch interruption.wait(for: socket, until: deadline) {
        case .timedOut: return []
        case .interrupted: throw .closed
        case .ready: try consume()
        }
      }
    }
  }
#endif
