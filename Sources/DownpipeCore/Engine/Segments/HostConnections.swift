internal import Synchronization

/// The connections to each host, over all downloads: one with which a download begins, and those that segments add.
///
/// The limit of a host holds for both together. A download that begins takes the place of a connection that was added:
/// downloads share a host before any of them has several connections to it. A download that was started by hand exceeds
/// the limit if other downloads reach it. URLs without a host have none.
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
    /// The numbers of the added connections, also of those that were told to end.
    var extras: Set<UInt64> = []
    /// The number of added connections that were told to end and have not been closed.
    var ending = 0
    /// The downloads that wait for a place, the longest first.
    var waiters: [(number: UInt64, turn: Completion)] = []
    /// The number of downloads beyond the limit, which do not take the places of others.
    var beyond = 0

    func hasRoom(_ limit: Int?) -> Bool { limit.map { open.count < $0 } ?? true }

    /// Takes a free place for which no download waits.
    mutating func takePlace(_ number: UInt64, _ limit: Int?) -> Bool {
      guard hasPlace(limit), waiters.isEmpty else { return false }
      open.insert(number)
      return true
    }

    /// Whether a download may have its first connection.
    func hasPlace(_ limit: Int?) -> Bool { limit.map { open.count - beyond < $0 } ?? true }

    /// Takes a place beyond the limit, and returns the added connections that must end; `nil` if one of these will make
    /// room without that.
    mutating func exceed(_ number: UInt64, _ limit: Int?) -> [@Sendable () -> Void]? {
      guard let limit, open.count - extras.count - beyond + waiters.count >= limit else { return nil }
      open.insert(number)
      beyond += 1
      return grantTurns(limit)
    }

    /// Counts the downloads beyond a changed limit: with a higher one, they are not beyond it any more.
    mutating func countBeyond(_ limit: Int?) {
      beyond = limit.map { min(beyond, max(0, open.count - extras.count - $0)) } ?? 0
    }

    mutating func close(_ number: UInt64, _ limit: Int?) -> [@Sendable () -> Void] {
      guard open.remove(number) != nil else { return [] }
      if extras.remove(number) == nil {
        beyond = max(0, beyond - 1)
      } else if added.removeValue(forKey: number) == nil {
        ending -= 1
      }
      return grantTurns(limit)
    }

    /// Gives free places to downloads that wait, and returns the added connections that must end.
    mutating func grantTurns(_ limit: Int?) -> [@Sendable () -> Void] {
      while hasPlace(limit), !waiters.isEmpty {
        let first = waiters.removeFirst()
        open.insert(first.number)
        first.turn.complete()
      }
      guard let limit else { return [] }
      // Those that were told to end are still open.
      let surplus = open.count + waiters.count - limit - ending
      let newest = added.keys.sorted().suffix(max(0, surplus))
      ending += newest.count
      return newest.compactMap { added.removeValue(forKey: $0) }
    }
  }

  private struct State {
    /// The most connections to one host; `nil` for no limit.
    var limit: Int?
    var hosts: [String: Host] = [:]
    var lastNumber: UInt64 = 0

    func limit(of host: String) -> Int? { host.isEmpty ? nil : limit }
  }

  private let state: Mutex<State>

  /// - Parameter limit: The most connections to one host; `nil` for no limit.
  init(limit: Int? = nil) { state = Mutex(State(limit: limit)) }

  /// The number of hosts with connections.
  var count: Int { state.withLock { $0.hosts.count } }

  /// The number of downloads that wait for a place at a host, for tests.
  func waiting(_ host: String) -> Int { state.withLock { $0.hosts[host]?.waiters.count ?? 0 } }

  /// Changes the limit. Added connections beyond it are ended.
  func setLimit(_ limit: Int?) {
    let ends = state.withLock { state in
      state.limit = limit
      return state.hosts.keys.sorted().flatMap { host in
        let limit = state.limit(of: host)
        state.hosts[host]?.countBeyond(limit)
        return state.hosts[host]?.grantTurns(limit) ?? []
      }
    }
    for end in ends { end() }
  }

  /// Waits until a download may open its first connection to a host, for which added ones are ended.
  /// - Parameter mayExceed: Whether the download was started by hand beyond the limits: it does not wait for others.
  /// - Throws: `CancellationError`.
  func open(_ host: String, mayExceed: Bool = false) async throws -> Ticket {
    let (ticket, turn, ends) = request(host, mayExceed: mayExceed)
    for end in ends { end() }
    guard let turn else { return ticket }
    do { try await turn.wait() } catch {
      giveUp(ticket)
      throw error
    }
    return ticket
  }

  /// Takes a place for the first connection of a download, or requests one.
  /// - Returns: The turn to wait for, if there is no place or another download waits for one, and the added connections
  ///   to end.
  private func request(
    _ host: String, mayExceed: Bool
  ) -> (Ticket, turn: Completion?, ends: [@Sendable () -> Void]) {
    state.withLock { state in
      state.lastNumber += 1
      let (ticket, limit) = (Ticket(host: host, number: state.lastNumber), state.limit(of: host))
      if state.hosts[host, default: Host()].takePlace(ticket.number, limit) { return (ticket, nil, []) }
      if mayExceed, let ends = state.hosts[host]?.exceed(ticket.number, limit) { return (ticket, nil, ends) }
      let turn = Completion()
      state.hosts[host]?.waiters.append((ticket.number, turn))
      return (ticket, turn, state.hosts[host]?.grantTurns(limit) ?? [])
    }
  }

  /// Whether a download may add a connection to a host.
  func hasRoom(_ host: String) -> Bool {
    state.withLock { state in
      let limit = state.limit(of: host)
      guard let own = state.hosts[host] else { return limit != 0 }
      return own.hasRoom(limit) && own.waiters.isEmpty
    }
  }

  /// Adds a connection of a download that has others.
  /// - Parameter end: Ends the connection when a download that begins needs its place; then it has to be closed, too.
  /// - Returns: `nil` when the host has as many connections as it may have.
  func add(_ host: String, end: @escaping @Sendable () -> Void) -> Ticket? {
    state.withLock { state in
      var own = state.hosts[host] ?? Host()
      guard own.hasRoom(state.limit(of: host)), own.waiters.isEmpty else { return nil }
      state.lastNumber += 1
      own.open.insert(state.lastNumber)
      own.extras.insert(state.lastNumber)
      own.added[state.lastNumber] = end
      state.hosts[host] = own
      return Ticket(host: host, number: state.lastNumber)
    }
  }

  /// Frees the place of a connection that has ended.
  func close(_ ticket: Ticket) {
    let ends = state.withLock { state -> [@Sendable () -> Void] in
      let limit = state.limit(of: ticket.host)
      // In place: a copy would copy the set of the open connections.
      let ends = state.hosts[ticket.host]?.close(ticket.number, limit) ?? []
      if let own = state.hosts[ticket.host], own.open.isEmpty, own.waiters.isEmpty { state.hosts[ticket.host] = nil }
      return ends
    }
    for end in ends { end() }
  }

  /// Gives up a place that was requested, also if it has been given meanwhile.
  private func giveUp(_ ticket: Ticket) {
    let isWaiting = state.withLock { state in
      let index = state.hosts[ticket.host]?.waiters.firstIndex { $0.number == ticket.number }
      return index.flatMap { state.hosts[ticket.host]?.waiters.remove(at: $0) } != nil
    }
    if !isWaiting { close(ticket) }
  }
}
