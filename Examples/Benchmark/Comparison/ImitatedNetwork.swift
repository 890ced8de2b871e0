/// The way from the servers to a program, for one run.
struct ImitatedNetwork: Sendable {
  /// The address of each mirror.
  private let bases: [String]
  private let proxies: [NetworkProxy]
  private let passed = NetworkProxy.PassedBytes()

  init(_ route: Row.Route, isCounted: Bool, _ comparison: Comparison) async throws {
    var sites: [(Site, NetworkProxy.Rules)] = []
    switch route {
    case .direct(let site):
      bases = [comparison.nginx.url(site, "", counted: isCounted)]
      proxies = []
      return
    case .delayed(let site, let roundTrip): sites = [(site, .init(delay: roundTrip / 2))]
    case .oneSlow(let site, let rate): sites = [(site, .init(slow: (3, rate)))]
    case .mirrors(let lifetime): sites = [(.rate8, .init(lifetime: lifetime)), (.rate4, .init()), (.rate1, .init())]
    }
    var proxies: [NetworkProxy] = []
    for (site, rules) in sites {
      let port = comparison.nginx.port(site, counted: false)
      proxies.append(try await NetworkProxy(to: port, rules, counting: passed, comparison.group))
    }
    self.proxies = proxies
    bases = proxies.map { "http://127.0.0.1:\($0.port)/" }
  }

  func urls(_ name: String) -> [String] { bases.map { $0 + name } }

  /// The bytes that passed the proxies; `nil` without proxies.
  var passedBytes: Int64? { proxies.isEmpty ? nil : passed.value }

  func stop() {
    for proxy in proxies { proxy.stop() }
  }
}
