#if RPC
  public import DownpipeCore
  import DownpipeServer
  import Foundation

  /// A server that clients of aria2 drive a downloader with: JSON-RPC over HTTP and WebSocket at `/jsonrpc`.
  ///
  /// ```swift
  /// let downloader = try await Downloader(settings: RPCSettings()) { settings in
  ///   HTTPSource()
  ///   QueueOrder()
  ///   Limits(concurrent: settings.concurrentDownloads ?? 5)
  ///   DownloadOptions(settings)
  ///   FileStore("/srv/downloads")
  ///   SQLiteLedger("/srv/downloads/.downpipe/ledger.sqlite")
  /// }
  /// let server = try await RPCServer(
  ///   downloader, .init(directory: "/srv/downloads", secret: try RPCSecret("a long token")))
  /// await server.run()
  /// ```
  /// It also has `/events`, changes of downloads as JSON for a browser's `EventSource`; `/metrics` for Prometheus; and
  /// `/healthz`. The first two need the token as `Authorization: Bearer TOKEN`, or as the parameter `token`.
  ///
  /// What strangers can reach is bounded: the sizes of requests, the number of connections, what waits for a socket that does not
  /// read, and the number of wrong tokens from an address. Requests of pages of other sites are refused.
  public final class RPCServer: Sendable {
    private let server: HTTPServer
    private let notifier: Notifier
    private let downloader: Downloader
    private let end = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    /// Starts to listen. ``run()`` accepts connections.
    ///
    /// - Parameters:
    ///   - downloader: A downloader that was created with ``RPCSettings``. Its storage has the folder of the configuration,
    ///     and its order is ``QueueOrder``, so that clients can move downloads.
    ///   - configuration: Where to listen, and what clients may do.
    /// - Throws: ``/DownpipeCore/DownloadError`` with `.invalidRequest` for an address or a certificate that cannot be used, or a
    ///   downloader without ``RPCSettings``.
    public init(_ downloader: Downloader, _ configuration: Configuration) async throws {
      let gids = GIDIndex(downloader)
      let lists = ListCache(downloader, time: SystemTime())
      let end = end.continuation
      let aria2 = Aria2(
        downloader: downloader, settings: try downloader.settings(RPCSettings.self), configuration: configuration,
        gids: gids, lists: lists, sessionID: (0..<40).map { _ in String(Int.random(in: 0..<16), radix: 16) }.joined(),
        shutDown: { end.yield() })
      notifier = Notifier(gids, lists)
      self.downloader = downloader
      let handler = RPCHandler(
        rules: AccessRules(
          hosts: Set(configuration.hosts.map { $0.lowercased() }),
          origins: Set(configuration.origins.map { $0.lowercased() })),
        secret: configuration.secret, aria2: aria2, notifier: notifier,
        events: LiveEvents(downloader: downloader, time: SystemTime()),
        metrics: RPCMetrics(downloader), time: SystemTime())
      do {
        let tls = try configuration.certificate.map {
          try ServerTLS(certificate: $0.file, key: $0.keyFile, report: configuration.report)
        }
        var limits = ServerLimits()
        limits.connections = max(1, configuration.maximumConnections)
        limits.connectionsPerAddress = max(1, limits.connections / 2)
        server = try await HTTPServer(configuration.address.listen, tls: tls, limits: limits, handler: handler)
      } catch let error as ServerTLSError {
        throw DownloadError(.invalidRequest, error.description, cause: error)
      } catch {
        throw DownloadError(.invalidRequest, "the server cannot listen at \(error)", cause: error)
      }
    }

    /// The port; `nil` for a socket in the file system.
    public var port: Int? { server.port }

    /// Serves clients until the task is cancelled, or a client ends the server. The downloader goes on.
    public func run() async {
      // Before the first client can add a download.
      let events = downloader.allEvents()
      await withTaskGroup(of: Void.self) { group in
        group.addTask { await self.server.run() }
        group.addTask { await self.notifier.run(events) }
        group.addTask {
          for await _ in self.end.stream { break }
          // The reply to the client goes first.
          try? await Task.sleep(for: .milliseconds(200))
        }
        await group.next()
        group.cancelAll()
      }
    }
  }
#else
  /// A server that clients of aria2 drive a downloader with. It needs the trait `RPC`.
  public enum RPCServer {}
#endif
