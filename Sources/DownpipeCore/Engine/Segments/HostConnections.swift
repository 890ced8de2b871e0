internal import Synchronization

/// The connections to each host, over all downloads: one with which a download begins, and those that segments add.
///
/// The limit of a host holds for both together. A download that begins takes the place of a connection that was added:
/// downloads share a host before any of them has several connections to it.
final class HostConnections: Sendable {
  /// A connection to a host, until ``HostConnections/close(_:)``.
  struct Ticket: Sendable, Hashable {
    fileprivate let host: String
    fileprivate let number: UInt64
  }

  private struct Host {
    var open: Set<UInt64> = []
    /// How the added connections are ended, by number.
    var added: [UInt64: @Sendable () -> Void] = [:]
    /// The downloads that wait for a place, the longest first.
    var waiters: [(number: UInt64, limit: Int, continuation: CheckedContinuation<Void, any Error>)] = []
  }

  private struct State {
    var hosts: [String: Host] = [:]
    var lastNumber: UInt64 = 0
  }

  private let state = Mutex(State())

  /// Waits until a download may open its first connection to a host, for which added ones are ended.
  /// - Throws: `CancellationError`.
  func open(_ host: String, limit: Int) async throws -> Ticket {
    let ticket = Ticket(host: host, number: nextNumber())
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let end = state.withLock { state -> (@Sendable () -> Void)? in
          var own = state.hosts[host] ?? Host()
          defer { state.hosts[host] = own }
          if own.open.count < limit {
            own.open.insert(ticket.number)
            continuation.resume()
            return nil
          }
          own.waiters.append((ticket.number, limit, continuation))
          guard let newest = own.added.keys.max() else { return nil }
          return own.added.removeValue(forKey: newest)
        }
        end?()
        // The handler may have run before the continuation was stored.
        if Task.isCancelled { giveUp(ticket) }
      }
    } onCancel: {
      giveUp(ticket)
    }
    return ticket
  }

  /// Whether a download may add a connection to a host.
  func hasRoom(_ host: String, limit: Int) -> Bool {
    state.withLock { state in
      guard let own = state.hosts[host] else { return true }
      return own.open.count < limit && own.waiters.isEmpty
    }
  }

  /// Adds a connection of a download that has others.
  /// - Parameter end: Ends the connection when a download that begins needs its place; then it has to be closed, too.
  /// - Returns: `nil` when the host has as many connections as it may have.
  func add(_ host: String, limit: Int, end: @escaping @Sendable () -> Void) -> Ticket? {
    state.withLock { state in
      var own = state.hosts[host] ?? Host()
      guard own.open.count < limit, own.waiters.isEmpty else { return nil }
      state.lastNumber += 1
      own.open.insert(state.lastNumber)
      own.added[state.lastNumber] = end
      state.hosts[host] = own
      return Ticket(host: host, number: state.lastNumber)
    }
  }

  /// Frees the place of a connection that has ended.
  func close(_ ticket: Ticket) {
    state.withLock { state in
      guard var own = state.hosts[ticket.host], own.open.remove(ticket.number) != nil else { return }
      own.added[ticket.number] = nil
      while let first = own.waiters.first, own.open.count < first.limit {
        own.waiters.removeFirst()
        own.open.insert(first.number)
        first.continuation.resume()
      }
      state.hosts[ticket.host] = own.open.isEmpty && own.waiters.isEmpty ? nil : own
    }
  }

  private func nextNumber() -> UInt64 {
    state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
  }

  private func giveUp(_ ticket: Ticket) {
    let waiter = state.withLock { state in
      let index = state.hosts[ticket.host]?.waiters.firstIndex { $0.number == ticket.number }
      return index.flatMap { state.hosts[ticket.host]?.waiters.remove(at: $0) }
    }
    waiter?.continuation.resume(throwing: CancellationError())
  }
}
