#if AsyncHTTPClient
  import AsyncHTTPClient
  import Dispatch
  import DownpipeCore
  import Foundation
  import NIOCore
  import NIOHTTP1
  import NIOPosix
  import NIOSSL
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
    final class LoopClient: Sendable {
      let eventLoop: any EventLoop
      let client: HTTPClient
      /// For `http:` through an HTTP proxy: connects to the proxy as to a server.
      let absoluteFormClient: HTTPClient?
      /// The number of transfers on the loop.
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
      var transfers: [ObjectIdentifier: ClientTransfer] = [:]
      var waitingForEnd: CheckedContinuation<Void, Never>?
    }

    /// The number of connections that may stay open when fewer downloads are running.
    private static let connections = 32

    /// How long ``stop()`` waits for connections to close.
    private static let closingTime = DispatchTimeInterval.milliseconds(50)

    /// The longest body of a redirect, in bytes, that is read to reuse the connection.
    private static let drainedBytes = 16 * 1024

    let configuration: AsyncHTTPClientSource.Configuration
    private let group: MultiThreadedEventLoopGroup
    private let loops: [LoopClient]
    /// For origins that get no credentials; `nil` where the settings have no certificate to show.
    private let anonymousTLS: TLSConfiguration?
    private let state = Mutex(State())

    /// - Throws: ``DownloadError`` when the configuration's proxy or certificates are unusable.
    init(
      _ configuration: AsyncHTTPClientSource.Configuration, context: SourceContext,
      threads: Int = min(max(2, System.coreCount), 8)
    ) throws(DownloadError) {
      try configuration.proxy?.check()
      let connections = OpenConnections(limit: max(Self.connections, context.concurrentDownloads))
      let settings = try configuration.clientConfiguration(context, connections, isForward: false)
      var absoluteForm: HTTPClient.Configuration?
      if case .http = configuration.proxy?.kind {
        absoluteForm = try configuration.clientConfiguration(context, connections, isForward: true)
      }
      let group = MultiThreadedEventLoopGroup(numberOfThreads: threads)
      anonymousTLS =
        configuration.tls.clientCertificate == nil ? nil : try configuration.tls.configuration(showsCertificate: false)
      self.configuration = configuration
      self.group = group
      loops = group.makeIterator().map { LoopClient($0, settings, absoluteForm: absoluteForm) }
    }

    deinit {
      guard !state.withLock({ $0.isStopped }) else { return }
      Self.close(loops.flatMap(\.clients), then: group) {}
    }

    /// Closes the clients and then the threads, asynchronously.
    private static func close(
      _ clients: [HTTPClient], then group: MultiThreadedEventLoopGroup, _ closed: @escaping @Sendable () -> Void
    ) {
      let closing = DispatchGroup()
      for client in clients {
        closing.enter()
        client.shutdown { _ in closing.leave() }
      }
      closing.notify(queue: .global()) { group.shutdownGracefully { _ in closed() } }
    }

    /// Cancels all transfers and closes every connection. A second call has no effect.
    ///
    /// AsyncHTTPClient cannot abandon a connection that it is opening. Such a connection keeps its thread until the
    /// connect time limit, but this method does not wait for it.
    func stop() async {
      let transfers = state.withLock { state -> [ClientTransfer]? in
        guard !state.isStopped else { return nil }
        state.isStopped = true
        return Array(state.transfers.values)
      }
      guard let transfers else { return }
      for transfer in transfers { transfer.cancel(DownloadError(.shutDown, "the downloader was shut down")) }
      // A transfer needs its event loop in order to end.
      await withCheckedContinuation { continuation in
        let isEmpty = state.withLock { state in
          if state.transfers.isEmpty { return true }
          state.waitingForEnd = continuation
          return false
        }
        if isEmpty { continuation.resume() }
      }
      let clients = loops.flatMap(\.clients)
      let group = group
      await withCheckedContinuation { continuation in
        let end = FirstEnd(continuation)
        Self.close(clients, then: group) { end.reached() }
        DispatchQueue.global().asyncAfter(deadline: .now() + Self.closingTime) { end.reached() }
      }
    }

    /// Registers a transfer.
    func began(_ transfer: ClientTransfer, on loop: LoopClient) throws(DownloadError) {
      let isStopped = state.withLock { state in
        if !state.isStopped { state.transfers[ObjectIdentifier(transfer)] = transfer }
        return state.isStopped
      }
      if isStopped { throw DownloadError(.shutDown, "the downloader was shut down") }
      loop.load.add(1, ordering: .relaxed)
    }

    /// Removes a transfer that has ended.
    func ended(_ transfer: ClientTransfer, on loop: LoopClient) {
      loop.load.subtract(1, ordering: .relaxed)
      let waiting = state.withLock { state -> CheckedContinuation<Void, Never>? in
        state.transfers[ObjectIdentifier(transfer)] = nil
        guard state.transfers.isEmpty else { return nil }
        defer { state.waitingForEnd = nil }
        return state.waitingForEnd
      }
      waiting?.resume()
    }

    /// Sends the request, follows redirects, and returns the reply.
    func open(_ request: SourceRequest) async throws -> SourceReply {
      var request = request
      if request.headers["User-Agent"] == nil { request.headers["User-Agent"] = configuration.userAgent }
      var redirects = try Redirects(
        request, fields: HTTPRequestFields.fields(for: request),
        rules: .init(maximum: max(0, configuration.maximumRedirects)))
      let deadline = configuration.totalTimeLimit.map { NIODeadline.now() + TimeAmount(clamping: $0) }

      while true {
        try request.lease.check()
        let loop = idlestLoop
        let transfer = ClientTransfer(session: self, loop: loop)
        let (client, message) = try message(redirects, on: loop)
        let head = try await transfer.start(client, message, deadline: deadline)
        let body = UnreadBody(transfer, pace: request.pace)
        let status = Int(head.status.code)
        if try redirects.follow(status: status, headers: Self.redirectFields(head)) {
          await transfer.drain(atMost: Self.drainedBytes)
          continue
        }
        var headers = HeaderFields()
        headers.fields = head.headers.map { HeaderField($0.name, $0.value) }
        var reply = try SourceReply(httpStatus: status, headers: headers, url: redirects.url, body: body.body)
        redirects.record(in: &reply)
        return reply
      }
    }

    /// The fields of a response that a redirect depends on: `Location`, one character an octet, and `Link`.
    /// - Throws: ``DownloadError`` with `.invalidResponse` for octets of a `Location` that SwiftNIO has replaced,
    ///   because they are not UTF-8: the request would be for another file.
    private static func redirectFields(_ head: HTTPResponseHead) throws(DownloadError) -> HeaderFields {
      var result = HeaderFields(head.headers["Link"].map { HeaderField("Link", $0) })
      for location in head.headers["Location"] {
        guard !location.unicodeScalars.contains("\u{FFFD}") else {
          throw DownloadError(
            .invalidResponse,
            "the Location of the redirect has octets that are not UTF-8, which async-http-client cannot read: use "
              + "HTTPSource", httpStatus: Int(head.status.code))
        }
        let octets = String(String.UnicodeScalarView(location.utf8.map { Unicode.Scalar($0) }))
        result.fields.append(HeaderField("Location", octets))
      }
      return result
    }

    /// The first loop with the fewest transfers, so that single downloads reuse the same connection.
    private var idlestLoop: LoopClient {
      var best = loops[0]
      var least = Int.max
      for loop in loops {
        let load = loop.load.load(ordering: .relaxed)
        if load < least { (best, least) = (loop, load) }
      }
      return best
    }

    /// The message for a URL, and the client that sends it.
    private func message(_ redirects: Redirects, on loop: LoopClient) throws -> (HTTPClient, HTTPClient.Request) {
      var headers = HTTPHeaders(redirects.fields.fields.map { ($0.name, $0.value) })
      if let user = redirects.userInfo {
        let credentials = AsyncHTTPClientSource.Proxy.Credentials(user: user.user, password: user.password ?? "")
        headers.add(name: "Authorization", value: credentials.basic)
      }
      // Only scheme, host and port are taken from the URL of a message: ``TargetHandler`` sends the target.
      let origin = Origin(redirects.url).map(String.init(describing:)) ?? ""
      guard let proxy = configuration.proxy, let client = loop.absoluteFormClient, origin.hasPrefix("http://") else {
        headers.replaceOrAdd(name: TargetHandler.field, value: HTTPURL.target(redirects.url))
        var message = try HTTPFailure.translating { try HTTPClient.Request(url: origin + "/", headers: headers) }
        if !redirects.mayLogIn { message.tlsConfiguration = anonymousTLS }
        return (loop.client, message)
      }
      headers.replaceOrAdd(name: "Host", value: String(origin.dropFirst("http://".count)))
      headers.replaceOrAdd(name: TargetHandler.field, value: HTTPURL.wireText(redirects.url))
      if case .http(let credentials?) = proxy.kind {
        headers.replaceOrAdd(name: "Proxy-Authorization", value: credentials.basic)
      }
      let host = proxy.host.contains(":") ? "[\(proxy.host)]" : proxy.host
      let hop = "http://\(host):\(proxy.port)/"
      return (client, try HTTPFailure.translating { try HTTPClient.Request(url: hop, headers: headers) })
    }
  }

  /// Resumes its continuation once, when the first of several ends is reached.
  private final class FirstEnd: Sendable {
    private let continuation: Mutex<CheckedContinuation<Void, Never>?>

    init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = Mutex(continuation) }

    func reached() {
      let waiting = continuation.withLock { continuation in
        defer { continuation = nil }
        return continuation
      }
      waiting?.resume()
    }
  }
#endif
