#if LIBCURL
  import DownpipeCore
  import Foundation
  import Synchronization

  /// The threads of one run, and what a request needs before a thread can send it.
  ///
  /// The threads are its own, because sinks run on them and may wait for a disk. Without ``stop()`` the release of the last
  /// reference ends them.
  final class HTTPSession: SourceSession {
    /// libcurl's work and the sinks of a few hundred transfers keep one core busy; more threads than cores gain nothing.
    static let usualThreads = min(max(2, ProcessInfo.processInfo.activeProcessorCount), 4)

    let configuration: HTTPSource.Configuration
    private let threads: [CurlThread]
    private let jar: CookieJar?
    private let names = NameLookup()
    /// Whether all downloads of a host are on one thread.
    private let keepsHostsOnThreads: Bool

    /// - Parameter keepsHostsOnThreads: Whether all downloads of a host are on one thread. A host has no more connections then
    ///   than downloads: an idle connection of one thread does not serve a download of another.
    init(
      _ configuration: HTTPSource.Configuration, threads count: Int, keepsHostsOnThreads: Bool = false
    ) throws(DownloadError) {
      guard CurlLibrary.version > 0 else {
        throw DownloadError(.invalidPipeline, "libcurl does not start: check its installation")
      }
      try configuration.check()
      self.configuration = configuration
      self.keepsHostsOnThreads = keepsHostsOnThreads
      let jar: CookieJar? = if let cookies = configuration.cookies { try CookieJar(cookies) } else { nil }
      self.jar = jar
      let settings = configuration.curlSettings
      var threads: [CurlThread] = []
      do throws(DownloadError) {
        for number in 1...count {
          threads.append(try CurlThread("downpipe.http.\(number)", settings))
        }
      } catch {
        for thread in threads { thread.abandon() }
        throw error
      }
      self.threads = threads
    }

    deinit {
      for thread in threads { thread.abandon() }
    }

    /// Cancels all requests and closes every connection. A second call has no effect.
    func stop() async {
      await withTaskGroup(of: Void.self) { group in
        for thread in threads {
          group.addTask { await thread.stop() }
        }
      }
      jar?.save()
    }

    /// Sends the request, follows redirects, and returns the reply.
    ///
    /// The frame of this function is on the heap while the server has not answered. It has room for little more than the
    /// reply: what is known of the request is in an ``Opening``, whose functions are not inlined.
    func open(_ request: SourceRequest) async throws -> SourceReply {
      let opening = try Opening(request, for: self)
      while true {
        try opening.check()
        let addresses = names.isNeeded ? try await addresses(for: opening.redirects.origin) : nil
        let response = opening.nextResponse()
        let head: ResponseHead
        do { head = try await response.start { id in try opening.order(id, addresses: addresses) } } catch {
          throw await judged(error, opening.redirects.origin)
        }
        if let reply = try opening.reply(head, response) { return reply }
        await response.drain()
      }
    }

    /// If no name server answers, the fault is that of the way to the host.
    @inline(never)
    private func judged(_ error: any Error, _ origin: Origin) async -> any Error {
      guard var error = error as? DownloadError, error.code == .hostNotFound, error.scope == .download,
        await NameLookup.isUnanswered(origin.host, within: configuration.connectTimeLimit)
      else { return error }
      error.scope = .host
      return error
    }

    @inline(never)
    private func addresses(for origin: Origin) async throws -> [String] {
      try await names.addresses(
        for: origin, fixed: configuration.resolve,
        mayUseProxy: configuration.proxy.mayLookNamesUp(
          blocksPrivateAddresses: configuration.blocksPrivateAddresses),
        within: configuration.connectTimeLimit)
    }

    /// A request on its way through its redirects. One task uses it.
    private final class Opening {
      private(set) var redirects: Redirects
      private let session: HTTPSession
      private let deadline: ContinuousClock.Instant?
      private let pace: TransferPace
      private let lease: RequestLease

      @inline(never)
      init(_ request: SourceRequest, for session: HTTPSession) throws {
        self.session = session
        (pace, lease) = (request.pace, request.lease)
        var request = request
        if request.headers["User-Agent"] == nil { request.headers["User-Agent"] = session.configuration.userAgent }
        redirects = try Redirects(
          request, fields: HTTPRequestFields.fields(for: request), rules: session.configuration.redirectRules)
        deadline = session.configuration.totalTimeLimit.map { ContinuousClock.now + $0 }
      }

      /// Throws when the server of the URL in use may not be asked.
      @inline(never)
      func check() throws {
        // Once more when there is a connection, of which a libcurl before 7.80 does not tell.
        try lease.check()
        try session.configuration.check(redirects.url, redirects.origin)
      }

      /// The response with the server of the URL in use.
      @inline(never)
      func nextResponse() -> PendingResponse { PendingResponse(session.thread(for: redirects.origin), of: session) }

      /// - Parameter addresses: The result of a look-up; `nil` if libcurl looks the name up.
      @inline(never)
      func order(_ id: Order.ID, addresses: [String]?) throws -> Order {
        try session.order(
          id, redirects, addresses: addresses ?? session.configuration.resolve.map(\.entry), deadline: deadline,
          lease: lease)
      }

      /// The reply; `nil` after a redirect.
      @inline(never)
      func reply(_ head: ResponseHead, _ response: PendingResponse) throws -> SourceReply? {
        if try redirects.follow(status: head.status, headers: head.fields) { return nil }
        return try session.reply(head, response, redirects, pace: pace)
      }
    }

    private func order(
      _ id: Order.ID, _ redirects: Redirects, addresses: [String], deadline: ContinuousClock.Instant?,
      lease: RequestLease
    ) throws(DownloadError) -> Order {
      var request = HTTPOrder(fields: redirects.fields, version: configuration.httpVersion, jar: jar)
      try logIn(&request, redirects)
      return Order(
        id: id, url: HTTPURL.wireText(redirects.url), addresses: addresses, deadline: deadline,
        // A server does not choose where passwords and certificates go.
        showsCertificate: redirects.mayLogIn, lease: lease, request: request)
    }

    private func logIn(_ request: inout HTTPOrder, _ redirects: Redirects) throws(DownloadError) {
      guard redirects.mayLogIn, redirects.fields["Authorization"] == nil else { return }
      let credentials = configuration.credentials.first { $0.origin == redirects.origin }
      if let userInfo = redirects.userInfo {
        guard !userInfo.user.utf8.contains(0), userInfo.password?.utf8.contains(0) != true else {
          throw DownloadError(.invalidRequest, "the user name or the password in the URL contains %00")
        }
        let password = userInfo.password ?? netrcLogin(for: redirects.origin, user: userInfo.user)?.password ?? ""
        request.login = HTTPOrder.Login(
          user: userInfo.user, password: password, schemes: credentials?.schemes ?? configuration.passwordSchemes)
      } else if let credentials {
        switch credentials.kind {
        case .password(let user, let password, let schemes):
          request.login = HTTPOrder.Login(user: user, password: password, schemes: schemes)
        case .bearer(let token): request.fields["Authorization"] = "Bearer \(token)"
        }
      } else if let login = netrcLogin(for: redirects.origin, user: nil) {
        request.login = HTTPOrder.Login(
          user: login.user, password: login.password, schemes: configuration.passwordSchemes)
      }
    }

    private func netrcLogin(for origin: Origin, user: String?) -> NetrcFile.Login? {
      configuration.netrc?.login(for: origin, user: user)
    }

    private func reply(
      _ head: ResponseHead, _ response: PendingResponse, _ redirects: Redirects, pace: TransferPace
    ) throws(DownloadError) -> SourceReply {
      func body(limit: Int64?) -> Body {
        .pushing(discard: { response.discard() }) { sink in
          try await response.push(into: sink, pace: pace, limit: limit)
        }
      }
      var reply = try SourceReply(
        httpStatus: head.status, headers: head.fields, url: redirects.url, body: body(limit: nil),
        decodedTransferCodings: ["gzip", "x-gzip", "deflate"])
      redirects.record(in: &reply)
      if let maximum = configuration.maximumSize {
        reply.body = body(limit: try Self.limit(reply, maximum))
      }
      return reply
    }

    /// The most bytes that the body of a reply may have so that the file keeps its limit.
    private static func limit(_ reply: SourceReply, _ maximum: Int64) throws(DownloadError) -> Int64 {
      var start: Int64 = 0
      var size = reply.length.bytes
      if case .range(let range, let total) = reply.coverage {
        start = range.lowerBound
        size = total.bytes ?? range.upperBound
      }
      if case .none = reply.coverage { size = nil }
      guard size ?? 0 <= maximum, start <= maximum else { throw PendingResponse.tooLarge(maximum) }
      return maximum - start
    }

    /// With so few downloads from a host, one thread is enough, and servers may count connections. With more, idle
    /// connections may be open beside those in use.
    static func keepsHostsOnThreads(_ context: SourceContext) -> Bool { context.downloadsPerHost <= 8 }

    /// Downloads of one host stay on one thread, which has connections to it; with many at once, while no other thread has less
    /// to do.
    private func thread(for origin: Origin) -> CurlThread {
      var hasher = Hasher()
      hasher.combine(origin)
      let home = threads[Int(UInt(bitPattern: hasher.finalize()) % UInt(threads.count))]
      if keepsHostsOnThreads { return home }
      var best = home
      var least = home.load.load(ordering: .relaxed)
      for thread in threads {
        let load = thread.load.load(ordering: .relaxed)
        if load < least { (best, least) = (thread, load) }
      }
      return best
    }
  }
#endif
