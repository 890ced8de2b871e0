#if AsyncHTTPClient
  import AsyncHTTPClient
  import DownpipeCore
  import NIOCore

  extension AsyncHTTPClientSource.Configuration {
    /// The limit of the connections of one host. The engine limits the number of requests, and its limits can change
    /// during the run; with a smaller pool requests would wait for a connection until they time out.
    private static let pooledConnectionsPerHost = 1024

    /// How long an idle connection is kept.
    private static let idleConnectionTime = TimeAmount.seconds(30)

    /// The settings of the clients.
    /// - Parameters:
    ///   - connections: Where the connections are registered.
    ///   - isForward: Whether the clients send requests for `http:` to an HTTP proxy, to which they connect as to a
    ///     server.
    func clientConfiguration(
      _ context: SourceContext, _ connections: OpenConnections, isForward: Bool
    ) throws(DownloadError) -> HTTPClient.Configuration {
      var result = HTTPClient.Configuration(
        tlsConfiguration: try tls.configuration(),
        redirectConfiguration: .disallow,
        timeout: .init(connect: TimeAmount(clamping: connectTimeLimit)),
        decompression: .disabled)
      result.httpVersion = httpVersion == .http1Only ? .http1Only : .automatic
      result.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = max(
        Self.pooledConnectionsPerHost, context.concurrentDownloads, context.downloadsPerHost)
      result.connectionPool.idleTimeout = Self.idleConnectionTime
      // The retry policy decides about further attempts: a refused connection is reported immediately.
      result.connectionPool.retryConnectionEstablishment = false
      switch isForward ? nil : proxy?.kind {
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
          try TargetHandler.add(to: channel, connections)
          try EarlyCloseHandler.add(to: channel)
        }
      }
      result.http2ConnectionDebugInitializer = { channel in
        connections.opened(channel)
        return channel.eventLoop.makeSucceededVoidFuture()
      }
      result.http2StreamChannelDebugInitializer = { channel in
        channel.eventLoop.makeCompletedFuture { try TargetHandler.add(toStream: channel, connections) }
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
