#if LIBCURL
  import CCurl
  package import DownpipeCore
  import DownpipePOSIX
  import Foundation

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// Looks names up for a libcurl older than 7.87, whose threads would wait for a name server that does not answer when a
  /// transfer is cancelled.
  ///
  /// A look-up cannot be interrupted: its thread is left behind and its result dropped.
  package struct NameLookup: Sendable {
    /// Whether names are looked up here.
    package let isNeeded: Bool

    package init() { self.init(isNeeded: !CurlLibrary.leavesLookups) }

    init(isNeeded: Bool) { self.isNeeded = isNeeded }

    /// Entries for libcurl's table of names, the fixed ones included.
    ///
    /// - Parameters:
    ///   - fixed: Addresses in place of a look-up.
    ///   - mayUseProxy: Whether a proxy may look names up, or has a name itself.
    /// - Throws: ``DownloadError`` with `.hostNotFound` or `.timedOut`; `CancellationError`.
    package func addresses(
      for origin: Origin, fixed: [HTTPSource.HostAddress], mayUseProxy: Bool, within limit: Duration
    ) async throws -> [String] {
      var entries = fixed.map(\.entry)
      guard isNeeded, !mayUseProxy, let port = origin.port,
        !origin.host.hasPrefix("["), NetworkAddress(origin.host) == nil,
        !fixed.contains(where: { $0.host == origin.host && $0.port == port })
      else { return entries }
      let found = try await Self.ask(origin.host, within: limit).addresses
      guard !found.isEmpty else {
        throw DownloadError(
          .hostNotFound, "the host name \(origin.host) could not be resolved: check its spelling and the network")
      }
      // With “+” the entry is forgotten like any other result.
      entries.append("+\(origin.host):\(port):\(found.joined(separator: ","))")
      return entries
    }

    /// Whether no name server answers for a name, so that nothing is known of it. libcurl does not tell.
    static func isUnanswered(_ host: String, within limit: Duration) async -> Bool {
      do { return try await ask(host, within: limit).status == EAI_AGAIN } catch {
        return (error as? DownloadError)?.code == .timedOut
      }
    }

    /// What getaddrinfo(3) has returned, and the addresses.
    private typealias Answer = (status: CInt, addresses: [String])

    private static func ask(_ host: String, within limit: Duration) async throws -> Answer {
      let (answers, continuation) = AsyncThrowingStream<Answer, any Error>.makeStream()
      try SystemThread.start("downpipe.names") {
        continuation.yield(Self.ask(host))
        continuation.finish()
      }
      let timer = Task {
        try await Task.sleep(for: limit)
        continuation.finish(
          throwing: DownloadError(
            .timedOut, "the name \(host) was not resolved within \(limit.inSeconds); check the name server"))
      }
      defer { timer.cancel() }
      for try await answer in answers { return answer }
      // The task was cancelled.
      throw CancellationError()
    }

    private static func ask(_ host: String) -> Answer {
      var hints = addrinfo()
      #if canImport(Glibc)
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
      #else
        hints.ai_socktype = SOCK_STREAM
      #endif
      var first: UnsafeMutablePointer<addrinfo>?
      let status = getaddrinfo(host, nil, &hints, &first)
      guard status == 0 else { return (status, []) }
      defer { freeaddrinfo(first) }
      var addresses: [String] = []
      var next = first
      while let info = next?.pointee {
        if let address = info.ai_addr.flatMap({ NetworkAddress($0, length: Int(info.ai_addrlen)) }) {
          addresses.append(address.bytes.count == 4 ? "\(address)" : "[\(address)]")
        }
        next = info.ai_next
      }
      return (status, addresses)
    }
  }

  extension HTTPSource.ProxySetting {
    /// Whether a proxy may look names up, or has a name itself: libcurl does it then.
    ///
    /// - Parameter blocksPrivateAddresses: Whether proxies of the environment are not used.
    package func mayLookNamesUp(blocksPrivateAddresses: Bool) -> Bool {
      switch kind {
      case .none: false
      case .proxy: true
      case .environment: !blocksPrivateAddresses && Self.environmentHasProxy
      }
    }

    private static let environmentHasProxy = ProcessInfo.processInfo.environment.keys.contains {
      $0.lowercased().hasSuffix("_proxy") && $0.lowercased() != "no_proxy"
    }
  }
#endif
