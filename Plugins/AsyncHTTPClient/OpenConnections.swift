#if AsyncHTTPClient
  import NIOCore
  import Synchronization

  /// The open connections of a session, bounded in number.
  ///
  /// AsyncHTTPClient bounds the connections of one host only. Idle connections to thousands of hosts would use up the
  /// descriptors of the process. Above the limit the connections that have been idle for the longest time are closed.
  final class OpenConnections: Sendable {
    private struct Connection {
      let channel: any Channel
      /// The number of requests.
      var uses = 0
      /// When the connection became idle, as a count; `nil` while it is in use or new.
      var idleSince: Int?
    }

    private struct State {
      var connections: [ObjectIdentifier: Connection] = [:]
      var clock = 0
    }

    private let limit: Int
    private let state = Mutex(State())

    /// - Parameter limit: The number of connections above which idle ones are closed.
    init(limit: Int) { self.limit = limit }

    /// Registers a new connection, until it is closed.
    func opened(_ channel: any Channel) {
      change(channel) { $0.connections[ObjectIdentifier(channel)] = Connection(channel: channel) }
      channel.closeFuture.whenComplete { _ in
        self.state.withLock { _ = $0.connections.removeValue(forKey: ObjectIdentifier(channel)) }
      }
    }

    /// Notes the begin of a request.
    func began(on channel: any Channel) {
      state.withLock { state in
        state.connections[ObjectIdentifier(channel)]?.uses += 1
        state.connections[ObjectIdentifier(channel)]?.idleSince = nil
      }
    }

    /// Notes the end of a response.
    func ended(on channel: any Channel) {
      change(channel) { state in
        guard var connection = state.connections[ObjectIdentifier(channel)] else { return }
        connection.uses = max(0, connection.uses - 1)
        if connection.uses == 0 {
          state.clock += 1
          connection.idleSince = state.clock
        }
        state.connections[ObjectIdentifier(channel)] = connection
      }
    }

    /// Changes the state, then closes the oldest idle connections above the limit.
    private func change(_ channel: any Channel, _ body: (inout State) -> Void) {
      let surplus = state.withLock { state -> [any Channel] in
        body(&state)
        guard state.connections.count > limit else { return [] }
        return state.connections.values.filter { $0.idleSince != nil }
          .sorted { ($0.idleSince ?? 0) < ($1.idleSince ?? 0) }
          .prefix(state.connections.count - limit).map(\.channel)
      }
      for other in surplus { closeIfIdle(other) }
    }

    /// Closes a connection on its event loop, where requests begin: one that has begun meanwhile goes on.
    private func closeIfIdle(_ channel: any Channel) {
      channel.eventLoop.execute {
        let isIdle = self.state.withLock { $0.connections[ObjectIdentifier(channel)]?.idleSince != nil }
        if isIdle { channel.close(promise: nil) }
      }
    }
  }
#endif
