/// Where a server listens.
package enum ListenAddress: Sendable, Hashable {
  /// An address and a port; port 0 means any free port.
  case tcp(host: String, port: Int)
  /// The path of a socket in the file system. A socket that is left there is replaced if no process listens at it.
  case unix(path: String)
  /// A descriptor that already listens, as a service manager passes it.
  case inherited(descriptor: Int32)

  /// Parses a port, an address and a port, or a path after `unix:`: `6800`, `0.0.0.0:6800`, `[::1]:6800`, `unix:/run/d.sock`.
  package init?(_ text: String) {
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst(5))
      guard !path.isEmpty, !path.contains("\0") else { return nil }
      self = .unix(path: path)
      return
    }
    let colon = text.lastIndex(of: ":")
    var host = colon.map { String(text[..<$0]) } ?? "127.0.0.1"
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    let digits = colon.map { text[text.index(after: $0)...] } ?? text[...]
    guard !host.isEmpty, digits.allSatisfy(\.isNumber), let port = Int(digits), (0...65_535).contains(port) else {
      return nil
    }
    self = .tcp(host: host, port: port)
  }

  /// Whether only programs of this machine can connect, as far as the address tells.
  package var isLocal: Bool {
    switch self {
    case .tcp(let host, _): ["localhost", "::1"].contains(host) || host.hasPrefix("127.")
    case .unix: true
    case .inherited: false
    }
  }
}

extension ListenAddress: CustomStringConvertible {
  package var description: String {
    switch self {
    case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .unix(let path): "unix:\(path)"
    case .inherited(let descriptor): "descriptor \(descriptor)"
    }
  }
}
