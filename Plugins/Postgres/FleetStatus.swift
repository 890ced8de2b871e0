#if Postgres
  import DownpipeColumns
  public import DownpipeCore
  import DownpipePOSIX
  public import Foundation

  /// What the workers of a ledger do, as one look at the database shows it.
  public struct FleetStatus: Sendable, Hashable {
    /// One process that has the ledger open.
    public struct Worker: Sendable, Hashable {
      /// The name of its machine.
      public var host: String
      /// Its process number there.
      public var process: Int32
      /// When it has opened the ledger, by the server's clock.
      public var openedAt: Date
      /// When the server has last heard of it. A worker says so every ten seconds.
      public var seenAt: Date
      /// Whether the server has heard of it in the last 30 seconds. A worker that has not been heard of may be cut off from
      /// the database, and then it stops its downloads before their leases end.
      public var isHeard: Bool
      /// The number of its downloads that run.
      public var running: Int
      /// How fast the downloads grew that ran during the whole look, in bytes per second, by their checkpoints.
      public var bytesPerSecond: Int64
      /// When the first of its leases ends.
      public var leaseEnd: Date?
      /// What its machine lacks, so that it pauses; `nil` while nothing is wrong.
      public var fault: String?
      /// The number of downloads that have failed at it since it has opened the ledger, by cause, as in
      /// ``FleetStatus/failures``.
      public var failures: [String: Int]

      /// Creates a worker, for tests of what shows it.
      public init(
        host: String, process: Int32, openedAt: Date, seenAt: Date, isHeard: Bool, running: Int = 0,
        bytesPerSecond: Int64 = 0, leaseEnd: Date? = nil, fault: String? = nil, failures: [String: Int] = [:]
      ) {
        self.host = host
        self.process = process
        self.openedAt = openedAt
        self.seenAt = seenAt
        self.isHeard = isHeard
        self.running = running
        self.bytesPerSecond = bytesPerSecond
        self.leaseEnd = leaseEnd
        self.fault = fault
        self.failures = failures
      }
    }

    /// The number of downloads in each phase; phases without downloads are left out.
    public var counts: [DownloadState.Phase: Int] = [:]
    /// The processes that have the ledger open, in the order of their machines.
    public var workers: [Worker] = []
    /// The number of failed downloads by the code of their error and the HTTP status, such as `timedOut` and `httpStatus 404`.
    public var failures: [String: Int] = [:]
    /// When the server was asked, by its clock, as the other dates.
    public var observedAt = Date()
    /// The lease that ends first. If that is long before ``observedAt``, no worker is there that would take the download over.
    public var firstLeaseEnd: Date? { workers.compactMap(\.leaseEnd).min() }

    /// Creates the status of an empty ledger.
    public init() {}
  }

  extension PostgresLedger {
    /// Looks at the workers and the queue. Nothing is changed, and no tables are made.
    ///
    /// - Parameter interval: For how long downloads are observed, to find their speeds.
    /// - Throws: `DownloadError` with `.ledger` if the database cannot be reached or has no ledger in the schema;
    ///   `CancellationError` if the task is cancelled.
    public func status(observing interval: Duration = .seconds(1)) async throws -> FleetStatus {
      do {
        let pool = try PostgresPool(settings, connections: 1)
        defer { pool.close() }
        let schema = schema
        let before = try await pool.withConnection { connection in
          try Schema.check(schema, connection)
          return try FleetLook.sizes(connection)
        }
        let begin = ContinuousClock.now
        try await Task.sleep(for: interval)
        return try await pool.withConnection { connection in
          try FleetLook(connection, since: before, begin.duration(to: .now)).status
        }
      } catch {
        throw PostgresFault.translate(error)
      }
    }
  }

  /// One look at the tables.
  private struct FleetLook {
    private(set) var status = FleetStatus()

    /// The owner and the bytes on disk of each running download, by its generation.
    static func sizes(_ connection: PostgresConnection) throws -> [Int64: (owner: Int64, bytes: Int64)] {
      let rows = try connection.run("SELECT generation, owner, on_disk FROM download WHERE owner IS NOT NULL")
      var sizes: [Int64: (owner: Int64, bytes: Int64)] = [:]
      for row in 0..<rows.count {
        guard let generation = rows.integer(row, 0), let owner = rows.integer(row, 1) else { continue }
        sizes[generation] = (owner, rows.integer(row, 2) ?? 0)
      }
      return sizes
    }

    init(
      _ connection: PostgresConnection, since before: [Int64: (owner: Int64, bytes: Int64)], _ time: Duration
    ) throws {
      var gains: [Int64: Int64] = [:]
      for (generation, now) in try Self.sizes(connection) {
        guard let old = before[generation], old.owner == now.owner else { continue }
        // A damaged number must not overflow.
        let gain = min(max(0, max(0, now.bytes) - max(0, old.bytes)), 1 << 50)
        gains[now.owner] = min(gains[now.owner, default: 0] + gain, 1 << 50)
      }
      let seconds = max(time / .seconds(1), 0.01)
      let rows = try connection.run(
        """
        SELECT number, opening.owner, extract(epoch FROM opened_at), extract(epoch FROM seen_at),
          seen_at > clock_timestamp() - interval '30 seconds', held.count, held.lease,
          -- Tables of an earlier version do not have it.
          to_jsonb(opening)->>'condition'
        FROM opening LEFT JOIN (
          SELECT owner, count(*), min(lease) AS lease FROM download WHERE owner IS NOT NULL GROUP BY owner
        ) AS held ON held.owner = number
        ORDER BY opening.owner
        """)
      for row in 0..<rows.count {
        guard let number = rows.integer(row, 0) else { continue }
        let owner = rows.text(row, 1).flatMap(ProcessOwner.init)
        let condition = WorkerCondition.read(rows.text(row, 7))
        status.workers.append(
          FleetStatus.Worker(
            host: owner?.host ?? "", process: owner?.process ?? 0, openedAt: Self.date(rows.real(row, 2)),
            seenAt: Self.date(rows.real(row, 3)), isHeard: rows.boolean(row, 4) ?? false,
            running: Int(rows.integer(row, 5) ?? 0), bytesPerSecond: Int64(Double(gains[number] ?? 0) / seconds),
            leaseEnd: rows.real(row, 6).map(Self.date), fault: condition.fault, failures: condition.failures))
      }
      status.counts = try LedgerTables.counts(connection)
      let clock = try connection.run("SELECT extract(epoch FROM clock_timestamp())")
      status.observedAt = Self.date(clock.real(0, 0))
      let failures = try connection.run(
        """
        SELECT concat_ws(
            ' ', substring(error FROM '"code":{"rawValue":"([^"]*)"'), substring(error FROM '"httpStatus":(\\d+)')),
          count(*)
        FROM download WHERE phase = 'failed' GROUP BY 1
        """)
      for row in 0..<failures.count {
        status.failures[failures.text(row, 0) ?? "", default: 0] += Int(failures.integer(row, 1) ?? 0)
      }
    }

    /// A damaged number is far in the past.
    private static func date(_ seconds: Double?) -> Date {
      Date(timeIntervalSince1970: seconds.flatMap { (-1e11...1e11).contains($0) ? $0 : nil } ?? 0)
    }
  }
#endif
