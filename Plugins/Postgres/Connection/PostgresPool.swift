#if Postgres
  import Dispatch
  import DownpipeCore
  import Synchronization

  /// The connections of a store: opened when they are needed, up to a number, and kept.
  ///
  /// While the server cannot be reached, only one call in a while tries to open a connection, and the others fail at once
  /// with its error: the engine tries again by itself.
  final class PostgresPool: Sendable {
    /// A place for a connection, used by one call at a time.
    private final class Place: Sendable {
      let connection = Mutex<PostgresConnection?>(nil)
    }

    private struct State {
      var idle: [Place]
      var waiting: [(number: Int, continuation: CheckedContinuation<Place?, Never>)] = []
      var lastNumber = 0
      var isClosed = false
      /// The number of failures to open a connection since the last success.
      var failures = 0
      /// Until when opening a connection is not tried, and why.
      var rest: (until: ContinuousClock.Instant, fault: PostgresFault)?
    }

    private let settings: PostgresConnection.Settings
    private let interruption: Interruption
    private let state: Mutex<State>
    /// Threads of their own: a long copy of files must not hold up the ledger. They are at most as many as connections.
    private let threads = DispatchQueue(label: "downpipe.postgres", qos: .userInitiated, attributes: .concurrent)

    /// - Throws: ``PostgresFault`` if the process has no descriptors left.
    init(_ settings: PostgresConnection.Settings, connections: Int) throws(PostgresFault) {
      self.settings = settings
      interruption = try Interruption()
      state = Mutex(State(idle: (0..<max(1, connections)).map { _ in Place() }))
    }

    /// Calls `body` with a connection, on a thread that it may block, and ends the connection when the task is cancelled: for
    /// what may take long and changes nothing.
    ///
    /// - Throws: As ``withConnection(_:)``, and `CancellationError` if the task was cancelled.
    func withCancellableConnection<Value: Sendable>(
      _ body: @escaping @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
      let call = CancellableCall()
      return try await withTaskCancellationHandler {
        do {
          return try await withConnection { connection in
            try call.begin(connection.socket)
            defer { call.end() }
            return try body(connection)
          }
        } catch {
          try Task.checkCancellation()
          throw error
        }
      } onCancel: {
        call.cancel()
      }
    }

    /// Calls `body` with a connection, on a thread that it may block.
    ///
    /// - Throws: `CancellationError` if the task is cancelled while all connections are in use, ``PostgresFault``, and errors
    ///   of `body`.
    func withConnection<Value: Sendable>(
      _ body: @escaping @Sendable (PostgresConnection) throws -> Value
    ) async throws -> Value {
      guard let place = await takePlace() else {
        try Task.checkCancellation()
        throw PostgresFault.closed
      }
      defer { giveBack(place) }
      return try await withCheckedThrowingContinuation { continuation in
        threads.async { [self] in continuation.resume(with: Result { try use(place, body) }) }
      }
    }

    private func use<Value: Sendable>(
      _ place: Place, _ body: @Sendable (PostgresConnection) throws -> Value
    ) throws -> Value {
      try place.connection.withLock { known in
        if known?.isAlive != true { known = nil }
        let connection = try known ?? open()
        known = connection
        defer { if connection.isLost { known = nil } }
        return try body(connection)
      }
    }

    // MARK: Opening

    private func open() throws(PostgresFault) -> PostgresConnection {
      let (fault, failures) = state.withLock { state -> (PostgresFault?, Int) in
        guard let rest = state.rest else { return (nil, state.failures) }
        guard rest.until <= .now else { return (rest.fault, state.failures) }
        // The others go on to fail at once while this call tries.
        state.rest = (.now + settings.openingLimit, rest.fault)
        return (nil, state.failures)
      }
      if let fault { throw fault }
      do throws(PostgresFault) {
        let connection = try PostgresConnection.open(settings, interruptedBy: interruption)
        state.withLock { ($0.failures, $0.rest) = (0, nil) }
        return connection
      } catch {
        state.withLock { state in
          // Of several calls that fail together, one counts.
          guard state.failures == failures else { return }
          state.failures += 1
          // Up to 6.4 s, and at random: a thousand workers must not come back in the same moment.
          let longest = Duration.milliseconds(100) * (1 << min(state.failures, 6))
          state.rest = (.now + longest * Double.random(in: 0.5...1), error)
        }
        throw error
      }
    }

    // MARK: Places

    private func takePlace() async -> Place? {
      let number = state.withLock { state in
        state.lastNumber += 1
        return state.lastNumber
      }
      return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let (place, isOver) = state.withLock { state -> (Place?, Bool) in
            if state.isClosed || Task.isCancelled { return (nil, true) }
            if let place = state.idle.popLast() { return (place, true) }
            state.waiting.append((number, continuation))
            return (nil, false)
          }
          if isOver { continuation.resume(returning: place) }
        }
      } onCancel: {
        let waiting = state.withLock { state in
          state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0).continuation }
        }
        waiting?.resume(returning: nil)
      }
    }

    private func giveBack(_ place: Place) {
      let (next, isClosed) = state.withLock { state -> (CheckedContinuation<Place?, Never>?, Bool) in
        if state.isClosed { return (nil, true) }
        guard !state.waiting.isEmpty else {
          state.idle.append(place)
          return (nil, false)
        }
        return (state.waiting.removeFirst().continuation, false)
      }
      if isClosed { place.connection.withLock { $0 = nil } }
      next?.resume(returning: place)
    }

    /// The number of calls that wait for a connection.
    var waiting: Int { state.withLock { $0.waiting.count } }

    /// Ends all waits and connections. Calls that follow fail.
    func close() {
      let (waiting, idle) = state.withLock { state in
        state.isClosed = true
        defer { (state.waiting, state.idle) = ([], []) }
        return (state.waiting, state.idle)
      }
      interruption.fire()
      for one in waiting { one.continuation.resume(returning: nil) }
      for place in idle { place.connection.withLock { $0 = nil } }
    }
  }
#endif
