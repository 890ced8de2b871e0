#if Postgres
  import Dispatch
  import DownpipeCore
  import Synchronization

  /// Tells the stores in other processes of changes, and hears of theirs, by notifications of the server.
  ///
  /// A store announces at most ten times in a second: each notification is a short queue of all that commit. What it leaves
  /// out is announced later by the thread that listens. After a connection was lost, a change is assumed, because
  /// notifications were lost with it.
  final class Announcements: Sendable {
    private struct State {
      var hasNews = false
      /// Whether a change was not announced yet.
      var owes = false
      var last: ContinuousClock.Instant?
      /// Whether the store was not woken yet for what was heard.
      var owesWake = false
      var lastWake: ContinuousClock.Instant?

      /// Returns whether a change is to be announced now; otherwise it is owed.
      mutating func begin() -> Bool {
        owes = last.map { $0.duration(to: .now) < Announcements.interval } ?? false
        if !owes { last = .now }
        return !owes
      }
    }

    private static let interval: Duration = .milliseconds(100)
    /// How long the thread waits before it looks whether there is something to announce.
    private static let wait: Duration = .milliseconds(250)
    /// How often the connection is tried that hears nothing, and the row of the opening marked as seen.
    private static let sign: Duration = .seconds(10)
    /// How often the row is written when the worker fares differently.
    private static let signOfNews: Duration = .seconds(1)

    /// The shortest time between two calls of `wake`: each may be a lease, at each of a thousand workers.
    private static let rest: Duration = .seconds(1)

    private let settings: PostgresConnection.Settings
    private let channel: String
    private let memory: StoreMemory
    private let interruption: Interruption
    private let state = Mutex(State())
    private let wake: @Sendable () -> Void
    private let thread = DispatchQueue(label: "downpipe.postgres.news", qos: .utility)

    /// - Parameters:
    ///   - ledger: The random name that a ledger gets with its tables.
    ///   - memory: That of the store that announces. Its clock learns the server's time with each sign of life.
    ///   - wake: Called when others have announced changes, at most once in a second. The last one is never left out.
    /// - Throws: ``PostgresFault`` if the process has no descriptors left.
    init(
      _ settings: PostgresConnection.Settings, ledger: String, _ memory: StoreMemory,
      wake: @escaping @Sendable () -> Void
    ) throws(PostgresFault) {
      self.settings = settings
      self.memory = memory
      self.wake = wake
      channel = "downpipe " + ledger
      interruption = try Interruption()
      thread.async { [self] in listen() }
    }

    /// Returns whether others have announced a change since the last call.
    func takeNews() -> Bool {
      state.withLock { state in
        defer { state.hasNews = false }
        return state.hasNews
      }
    }

    /// Announces a change that was committed over a connection, now or a little later.
    func announce(over connection: PostgresConnection) {
      guard state.withLock({ $0.begin() }) else { return }
      // The change is committed: that it could not be announced is no failure of the call.
      do { try announceNow(over: connection) } catch { state.withLock { $0.owes = true } }
    }

    /// Wakes the store a little later: a lease has not seen everything.
    func oweWake() { state.withLock { $0.owesWake = true } }

    /// Announces what was left for later.
    func announceRest(over connection: PostgresConnection) {
      guard state.withLock({ $0.owes }) else { return }
      do {
        try announceNow(over: connection)
        state.withLock { $0.owes = false }
      } catch {
        // Others look at the ledger from time to time.
      }
    }

    private func announceNow(over connection: PostgresConnection) throws(PostgresFault) {
      _ = try connection.run("SELECT pg_notify($1, $2)", [.text(channel), .text("\(memory.owner.number)")])
    }

    // MARK: Listening

    private func listen() {
      var failures = 0
      while !interruption.hasFired {
        do throws(PostgresFault) {
          let connection = try PostgresConnection.open(settings, interruptedBy: interruption)
          _ = try connection.run("LISTEN " + Schema.quoted(channel), prepares: false)
          failures = 0
          // What was announced before this connection listened was not heard.
          state.withLock { ($0.hasNews, $0.owesWake) = (true, true) }
          try hear(connection)
        } catch {
          state.withLock { ($0.hasNews, $0.owesWake) = (true, true) }
          failures += 1
          let longest = Duration.milliseconds(100) * (1 << min(failures, 6))
          interruption.pause(for: longest * Double.random(in: 0.5...1))
        }
      }
    }

    private func hear(_ connection: PostgresConnection) throws(PostgresFault) {
      let opening = memory.owner.number
      var signed = ContinuousClock.now
      while !interruption.hasFired {
        let heard = try connection.notifications(within: Self.wait)
        let isOwing = state.withLock { state in
          if heard.contains(where: { $0.text != "\(opening)" }) { (state.hasNews, state.owesWake) = (true, true) }
          // Notifications, also its own, wake this thread earlier than the interval.
          return state.owes && state.begin()
        }
        wakeIfDue()
        if isOwing {
          do { try announceNow(over: connection) } catch {
            state.withLock { $0.owes = true }
            throw error
          }
        }
        let isNews = memory.condition.withLock { $0.isNews }
        if signed.duration(to: .now) >= (isNews ? Self.signOfNews : Self.sign) {
          signed = .now
          let condition = memory.condition.withLock { $0.take() }
          // Others delete the row of an opening that was cut off for long.
          let rows = try connection.run(
            """
            INSERT INTO opening (number, owner, condition) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3)
            ON CONFLICT (number) DO UPDATE SET seen_at = excluded.seen_at, condition = excluded.condition
            RETURNING \(ServerClock.column)
            """, [.integer(opening), .text(memory.owner.text), .text(condition)])
          memory.clock.note(rows.real(0, 0), askedAt: signed)
        }
      }
    }

    private func wakeIfDue() {
      let isDue = state.withLock { state in
        guard state.owesWake, state.lastWake.map({ $0.duration(to: .now) >= Self.rest }) ?? true else { return false }
        (state.owesWake, state.lastWake) = (false, .now)
        return true
      }
      if isDue { wake() }
    }

    // MARK: Ending

    /// Tells the thread to end.
    func stop() { interruption.fire() }

    /// Returns when the thread has ended.
    func end() async {
      stop()
      await withCheckedContinuation { continuation in thread.async { continuation.resume() } }
    }
  }
#endif
