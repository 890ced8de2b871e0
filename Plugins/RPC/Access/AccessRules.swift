import DownpipeServer
import Foundation

/// Which requests of browsers are let in.
///
/// A page of any site can send requests to a server on this machine or in this network. The browser says where the page is
/// from (`Origin`), and which name it used (`Host`): a name of the page's own that now leads here (DNS rebinding) is refused,
/// and so is every page of another origin, unless it is allowed.
struct AccessRules: Sendable, Hashable {
  /// Further names of this server, in lower case.
  var hosts: Set<String> = []
  /// Origins of pages that may use the server, such as `https://ariang.example`; `*` for all.
  var origins: Set<String> = []

  enum Verdict: Sendable, Hashable {
    /// - Parameter origin: The page's origin, if the reply has to name it.
    case allowed(origin: String?)
    case refused(String)
  }

  func check(_ request: ServerRequest) -> Verdict {
    let isLocal = request.connection.client == nil
    let hosts = request.values("Host")
    guard hosts.count <= 1 else { return .refused("more than one Host") }
    if !isLocal {
      guard let host = hosts.first, let name = Self.name(of: host) else { return .refused("no Host") }
      guard isOwn(name) else {
        return .refused("“\(name.prefix(100))” is not a name of this server: allow it with --rpc-allow-host")
      }
    }
    let origins = request.values("Origin")
    guard origins.count <= 1 else { return .refused("more than one Origin") }
    guard let origin = origins.first else {
      // A page can make a browser load a script or an image, or go to an address, which names no origin. Only the page of this
      // server itself may be opened from anywhere.
      if request.path == "/" { return .allowed(origin: nil) }
      let site = request.values("Sec-Fetch-Site").first?.lowercased() ?? "none"
      guard ["none", "same-origin"].contains(site) || self.origins.contains("*") else {
        return .refused("pages of other sites may not use this server: allow them with --rpc-allow-origin")
      }
      return .allowed(origin: nil)
    }
    if let host = hosts.first?.lowercased(), ["http://\(host)", "https://\(host)"].contains(origin.lowercased()) {
      return .allowed(origin: nil)
    }
    guard self.origins.contains("*") || self.origins.contains(origin.lowercased()) else {
      return .refused("pages of “\(origin.prefix(100))” may not use this server: allow them with --rpc-allow-origin")
    }
    return .allowed(origin: origin)
  }

  /// An address cannot be rebound, and this machine's own name is resolved here.
  private func isOwn(_ name: String) -> Bool {
    name == "localhost" || hosts.contains(name) || Self.isAddress(name)
  }

  /// The name or address in a field `Host`, in lower case and without the port.
  private static func name(of host: String) -> String? {
    let host = host.lowercased()
    if host.hasPrefix("[") {
      guard let end = host.firstIndex(of: "]") else { return nil }
      let rest = host[host.index(after: end)...]
      guard rest.isEmpty || rest.first == ":" && rest.dropFirst().allSatisfy(\.isNumber) else { return nil }
      return String(host[host.index(after: host.startIndex)..<end])
    }
    let parts = host.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count <= 2, let name = parts.first, !name.isEmpty else { return nil }
    return String(name.hasSuffix(".") ? name.dropLast() : name)
  }

  private static func isAddress(_ name: String) -> Bool {
    var four = in_addr()
    var six = in6_addr()
    return inet_pton(AF_INET, name, &four) == 1 || inet_pton(AF_INET6, name, &six) == 1
  }
}
