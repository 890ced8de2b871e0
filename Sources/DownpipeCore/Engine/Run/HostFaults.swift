internal import Synchronization

/// The hosts to which the way has failed in a row, by a proxy or a name server.
final class HostFaults: Sendable {
  /// With so many different ones, the fault is the machine's.
  static let enough = 3

  private let hosts = Mutex<Set<String>>([])

  /// Notes a failure on the way to a host.
  /// - Returns: Whether the fault is the machine's.
  func note(_ host: String) -> Bool {
    hosts.withLock { hosts in
      if hosts.count < Self.enough { hosts.insert(host) }
      return hosts.count >= Self.enough
    }
  }

  /// Notes that a host has been reached.
  func reached() { hosts.withLock { $0 = [] } }
}
