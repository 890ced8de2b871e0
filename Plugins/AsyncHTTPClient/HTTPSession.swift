#if AsyncHTTPClient
  import AsyncHTTPClient
  import DownpipeCore
  import Foundation
  import NIOCore
  import NIOHTTP1
  import NIOPosix
  import Synchronization

  /// The connections of one run, and the threads that serve them.
  ///
  /// It has its own event loops, because sinks run on them and may wait for a disk: on the shared event loops they
  /// would block other users of SwiftNIO. Without ``stop()`` the release of the last reference closes everything.
  final class HTTPSession: SourceSession {
    /// An event loop with its own client.
    ///
    /// A request, its connection and its sink stay on one thread. One client for several loops would move parts between
    /// threads or close its connections after each request.
    final class Lane: Sendable {
      let eventLoop: any EventLoop
      let client: HTTPClient
      /// For `http:` through an HTTP proxy: connects to the proxy as to a server.
      let absoluteFormClient: HTTPClient?
      /// The number of exchanges on the loop.
      let load = Atomic<Int>(0)

      init(_ eventLoop: any EventLoop, _ settings: HTTPClient.Configuration, absoluteForm: HTTPClient.Configuration?) {
        self.eventLoop = eventLoop
        client = HTTPClient(eventLoopGroupProvider: .shared(eventLoop), configuration: settings)
        absoluteFormClient = absoluteForm.map {
          HTTPClient(eventLoopGroupProvider: .shared(eventLoop), configuration: $0)
        }
      }

      var clients: [HTTPClient] { [client] + (absoluteFormClient.map { [$0] } ?? []) }
    }

    private struct State {
      var isStopped = false
      var exchanges: [ObjectIdentifier: HTTPExchange] = [:]
      var waitingForEnd: CheckedContinuation<Void, Never>?
    }

    /// The longest body of a redirect, in bytes, that is read to reuse the connection.
    private static let drainedBytes = 16 * 1024

    let configuration: AsyncHTTPClientSource.Configuration
    private let group: MultiThreadedEventLoopGroup
    private let lanes: [Lane]
    private let state = Mutex(State())

    /// - Throws: ``DownloadError`` when the configuration's proxy or certificates are unusable.
    init(
      _ configuration: AsyncHTTPClientSource.Configuration, context: SourceContext,
      threads: Int = min(max(2, System.coreCount), 8)
    ) throws(DownloadError) {
      try configuration.proxy?.check()
      let settings = try configuration.clientConfiguration(context)
      var absoluteForm: HTTPClient.Configuration?
      if case .http = configuration.proxy?.kind {
        var direct = settings
        direct.proxy = nil
        let tuning = settings.http1_1ConnectionDebugInitializer
        direct.http1_1ConnectionDebugInitializer = { channel in
          channel.eventLoop.makeCompletedFuture { try AbsoluteFormHandler.add(to: channel) }
            .flatMap { tuning?(channel) ?? channel.eventLoop.makeSucceededVoidFuture() }
        }
        absoluteForm = direct
      }
      let group = MultiThreadedEventLoopGroup(numberOfThreads: threads)
      self.configuration = configuration
      self.group = group
      lanes = group.makeIterator().map { Lane($0, settings, absoluteForm: absoluteForm) }
    }

    deinit {
      guard !state.withLock({ $0.isStopped }) else { return }
      Self.shutDown(lanes.flatMap(\.clients)[...], then: group)
    }

    /// Closes the clients one after the other and then the threads, asynchronously.
    private static func shutDown(_ clients: ArraySlice<HTTPClient>, then group: MultiThreadedEventLoopGroup) {
      guard let client = clients.first else { return group.shutdownGracefully { _ in } }
      client.shutdown { _ in shutDown(clients.dropFirst(), then: group) }
    }

    /// Cancels all exchanges and closes every connection. A second call has no effect.
    func stop() async {
      let exchanges = state.withLock { state -> [HTTPExchange]? in
        guard !state.isStopped else { return nil }
        state.isStopped = true
        return Array(state.exchanges.values)
      }
      guard let exchanges else { return }
      for exchange in exchanges { exchange.cancel(DownloadError(.shutDown, "the downloader was shut down")) }
      // An exchange needs its event loop in order to end.
      await withCheckedContinuation { continuation in
        let isEmpty = state.withLock { state in
          if state.exchanges.isEmpty { return true }
          state.waitingForEnd = continuation
          return false
        }
        if isEmpty { continuation.resume() }
      }
      for client in lanes.flatMap(\.clients) { try? await client.shutdown() }
      try? await group.shutdownGracefully()
    }

    /// Registers an exchange.
    func began(_ exchange: HTTPExchange, on lane: Lane) throws(DownloadError) {
      let isStopped = state.withLock { state in
        if !state.isStopped { state.exchanges[ObjectIdentifier(exchange)] = exchange }
        return state.isStopped
      }
      if isStopped { throw DownloadError(.shutDown, "the downloader was shut down") }
      lane.load.add(1, ordering: .relaxed)
    }

    /// Removes an exchange that has ended.
    func ended(_ exchange: HTTPExchange, on lane: Lane) {
      lane.load.subtract(1, ordering: .relaxed)
      let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
        state.exchanges[ObjectIdentifier(exchange)] = nil
        guard state.exchanges.isEmpty else { return nil }
        defer { state.waitingForEnd = nil }
        return state.waitingForEnd
      }
      waiting?.resume()
    }

    /// Sends the request, follows redirects, and returns the reply.
    func open(_ request: SourceRequest) async throws -> SourceReply {
      var request = request
      if request.headers["User-Agent"] == nil { request.headers["User-Agent"] = configuration.userAgent }
      var fields = try HTTPRequestFields.fields(for: request)
      var url = request.url
      try HTTPTarget.check(url)
      let deadline = configuration.totalTimeLimit.map { NIODeadline.now() + TimeAmount(clamping: $0) }

      for redirects in 0...max(0, configuration.maximumRedirects) {
        let lane = idlestLane
        let exchange = HTTPExchange(session: self, lane: lane)
        let (client, message) = try message(for: url, fields, on: lane)
        let head = try await exchange.start(client, message, deadline: deadline)
        let body = UnreadBody(exchange, pace: request.pace)
        let status = Int(head.status.code)
        let target =
          configuration.maximumRedirects > 0
          ? try HTTPTarget.redirect(from: url, status: status, locations: head.headers["Location"]) : nil
        guard let target else {
          var headers = HeaderFields()
          headers.fields = head.headers.map { HeaderField($0.name, $0.value) }
          return try SourceReply(httpStatus: status, headers: headers, url: url, body: body.body)
        }
        guard redirects < configuration.maximumRedirects else { break }
        await exchange.drain(atMost: Self.drainedBytes)
        if !HTTPTarget.haveSameOrigin(url, target) {
          for name in ["Authorization", "Proxy-Authorization", "Cookie", "Cookie2", "Host", "Origin"] {
            fields[name] = nil
          }
        }
        url = target
      }
      throw DownloadError(
        .tooManyRedirects,
        "the server redirected more than \(configuration.maximumRedirects) times, possibly in a loop: "
          + "open the URL in a browser, or allow more redirects")
    }

    /// The first lane with the fewest exchanges, so that single downloads reuse the same connection.
    private var idlestLane: Lane {
      var best = lanes[0]
      var least = Int.max
      for lane in lanes {
        let load = lane.load.load(ordering: .relaxed)
        if load < least { (best, least) = (lane, load) }
      }
      return best
    }

    /// The message for a URL, and the client that sends it.
    private func message(
      for url: URL, _ fields: HeaderFields, on lane: Lane
    ) throws -> (HTTPClient, HTTPClient.Request) {
      var headers = HTTPHeaders(fields.fields.map { ($0.name, $0.value) })
      if let user = url.user(percentEncoded: false), !headers.contains(name: "Authorization") {
        let credentials = AsyncHTTPClientSource.Proxy.Credentials(
          user: user, password: url.password(percentEncoded: false) ?? "")
        headers.add(name: "Authorization", value: credentials.basic)
      }
      if let absoluteFormClient = lane.absoluteFormClient, let proxy = configuration.proxy, !HTTPTarget.isSecure(url),
        let hop = AbsoluteFormHandler.hop(to: proxy, for: url)
      {
        headers.replaceOrAdd(name: "Host", value: HTTPTarget.authority(url))
        if case .http(let credentials?) = proxy.kind {
          headers.replaceOrAdd(name: "Proxy-Authorization", value: credentials.basic)
        }
        return (absoluteFormClient, try HTTPFailure.translating { try HTTPClient.Request(url: hop, headers: headers) })
      }
      return (lane.client, try HTTPFailure.translating { try HTTPClient.Request(url: url, headers: headers) })
    }
  }

  extension AsyncHTTPClientSource.Configuration {
    /// The limit of the connection pool. The engine limits the number of requests, and its limits can change during the
    /// run; with a smaller pool requests would wait for a connection until they time out.
    private static let pooledConnectionsPerHost = 1024

    fileprivate func clientConfiguration(_ context: SourceContext) throws(DownloadError) -> HTTPClient.Configuration {
      var result = HTTPClient.Configuration(
        tlsConfiguration: try tls.configuration(),
        redirectConfiguration: .disallow,
        timeout: .init(connect: TimeAmount(clamping: connectTimeLimit)),
        decompression: .disabled)
      result.httpVersion = httpVersion == .http1Only ? .http1Only : .automatic
      result.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = max(
        Self.pooledConnectionsPerHost, context.concurrentDownloads, context.downloadsPerHost)
      // The retry policy decides about further attempts: a refused connection is reported immediately.
      result.connectionPool.retryConnectionEstablishment = false
      switch proxy?.kind {
      case .http(let credentials):
        result.proxy = proxy.map {
          .server(
            host: $0.host, port: $0.port,
            authorization: credentials.map { .basic(username: $0.user, password: $0.password) })
        }
      case .socks5: result.proxy = proxy.map { .socksServer(host: $0.host, port: $0.port) }
      case nil: break
      }
      result.http1_1ConnectionDebugInitializer = { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.syncOptions?.setOption(
            .recvAllocator, value: AdaptiveRecvByteBufferAllocator(minimum: 4096, initial: 65_536, maximum: 262_144))
          try EarlyCloseHandler.add(to: channel)
        }
      }
      return result
    }
  }

  extension TimeAmount {
    /// The duration, limited to a millisecond at least and ten years at most, so that sums of times do not overflow.
    init(clamping duration: Duration) {
      self.init(min(max(duration, .milliseconds(1)), .seconds(10 * 365 * 86_400)))
    }
  }
#endif
