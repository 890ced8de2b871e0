import Foundation

/// Raises the number of descriptors that the process may have open. Shells start programs with 1,024 or 256 for the
/// sake of select(2); the administrator's limit is the hard one.
enum DescriptorLimit {
  /// More than the highest number of concurrent downloads needs.
  private static let enough: rlim_t = 65_536

  /// How many downloads can run at once: each needs its connections and a file. Connections are kept for the next
  /// download, and a step opens a few more files: of few downloads each may be at that point, of many only some are.
  ///
  /// - Parameter others: The number of descriptors that are used for something else, such as clients of a server.
  static func mostDownloads(connections: Int, besides others: Int = 0) -> Int {
    current.map { mostDownloads(within: $0 - others, connections: connections) } ?? .max
  }

  /// How many connections each of some downloads can have.
  static func mostConnections(downloads: Int, besides others: Int = 0, upTo most: Int) -> Int {
    var connections = most
    while connections > 1, mostDownloads(connections: connections, besides: others) < downloads { connections -= 1 }
    return connections
  }

  /// How many clients a server may have at a time, of its usual number.
  static func mostClients(of usual: Int) -> Int { current.map { min(usual, max(8, $0 / 4)) } ?? usual }

  static func mostDownloads(within limit: Int, connections: Int = 1) -> Int {
    max(1, (limit - 24) / (3 + connections), (limit - 200) / (1 + connections))
  }

  /// The least number of descriptors, when the process has fewer: the runtime ends a process that cannot open its own.
  static var missing: Int? { (current ?? least) < least ? least : nil }

  private static let least = 28

  /// How many idle connections each thread of the source may keep.
  static var idleConnections: Int { current.map { min(16, max(1, $0 / 32)) } ?? 16 }

  /// The soft limit; `nil` when the system does not tell.
  private static var current: Int? {
    var limit = rlimit()
    return getrlimit(resource, &limit) == 0 ? Int(clamping: limit.rlim_cur) : nil
  }

  #if canImport(Glibc)
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
    private static let resource = RLIMIT_NOFILE
  #endif

  /// Raises the soft limit to the hard one, or to what is enough. A failure changes nothing.
  static func raise() {
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0, limit.rlim_cur < enough else { return }
    let wanted = min(limit.rlim_max, enough)
    guard wanted > limit.rlim_cur else { return }
    limit.rlim_cur = wanted
    if setrlimit(resource, &limit) == 0 { return }
    #if canImport(Darwin)
      // Without a hard limit, the kernel's own is smaller.
      limit.rlim_cur = min(wanted, rlim_t(OPEN_MAX))
      _ = setrlimit(resource, &limit)
    #endif
  }
}
