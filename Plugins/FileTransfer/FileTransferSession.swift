#if LIBCURL
  import DownpipeCore
  import DownpipeHTTP
  import Foundation
  import Synchronization

  /// The threads of one run, and what a request needs before a thread can send it.
  final class FileTransferSession: SourceSession {
    /// Decryption is most of the work: two threads serve a fast network.
    private static let threadCount = 2

    let configuration: FileTransferSource.Configuration
    private let names = NameLookup()
    /// Made with the first request: most pipelines that have the source fetch other URLs.
    private let threads = Mutex<[CurlThread]>([])

    init(_ configuration: FileTransferSource.Configuration) throws(DownloadError) {
      guard CurlLibrary.version > 0 else {
        throw DownloadError(.invalidPipeline, "libcurl does not start: check its installation")
      }
      try configuration.check()
      self.configuration = configuration
    }

    deinit {
      for thread in threads.withLock({ $0 }) { thread.abandon() }
    }

    /// Cancels all requests and closes every connection. A second call has no effect.
    func stop() async {
      let threads = threads.withLock { $0 }
      await withTaskGroup(of: Void.self) { group in
        for thread in threads {
          group.addTask { await thread.stop() }
        }
      }
    }

    /// Asks for the file, and returns when its bytes begin to arrive.
    ///
    /// A server that serves no ranges, or does not state sizes, is asked once more, for the whole file.
    func open(_ request: SourceRequest) async throws -> SourceReply {
      let location = try FileLocation(request.url)
      try check(location, request)
      let logIn = try logIn(for: location, request)
      let deadline = configuration.totalTimeLimit.map { ContinuousClock.now + $0 }
      let addresses = try await names.addresses(
        for: location.origin, fixed: configuration.resolve,
        mayUseProxy: configuration.proxy.mayLookNamesUp(
          blocksPrivateAddresses: configuration.blocksPrivateAddresses),
        within: configuration.connectTimeLimit)
      func ask(from start: Int64, asksOnly: Bool = false) async throws -> (PendingResponse, ResponseHead.FileFacts) {
        let response = PendingResponse(try thread(for: location.origin), of: self)
        let head = try await response.start { id in
          Order(
            id: id, url: location.wireText, addresses: addresses, deadline: deadline,
            showsCertificate: !request.isNamedByServer, lease: request.lease,
            request: protocolRequest(location, logIn, from: start, asksOnly: asksOnly))
        }
        return (response, head.file ?? ResponseHead.FileFacts())
      }
      if let wanted = WantedFile(request) {
        let (response, file) = try await ask(from: 0, asksOnly: true)
        response.discard()
        if wanted.isSame(as: file) {
          return SourceReply(
            coverage: .none(.notModified), validator: Self.validator(of: file), suggestedName: location.name,
            finalURL: request.url, body: .empty)
        }
      }
      var range = request.range
      var servesRanges: Bool?
      while true {
        do {
          let (response, file) = try await ask(from: range?.start ?? 0)
          // The end of the range is not known without the size.
          if range == nil || file.size != nil || file.isBehindEnd {
            return try reply(response, file, range, servesRanges, location, request)
          }
          response.discard()
        } catch is RangesRefused where range != nil {}
        (range, servesRanges) = (nil, false)
      }
    }

    private func check(_ location: FileLocation, _ request: SourceRequest) throws(DownloadError) {
      try configuration.check(location)
      let scheme = location.scheme.rawValue
      guard CurlLibrary.schemes.contains(scheme) else {
        throw DownloadError(
          .unsupportedURL, "this libcurl was built without \(scheme.uppercased()): install one that has it")
      }
      if location.scheme == .sftp, request.isNamedByServer {
        throw DownloadError(
          .unsupportedURL, "a server has named this URL, so that it gets no log-in, and there is no SFTP without one")
      }
      if let range = request.range, range.start < 0 || range.end ?? .max <= range.start {
        throw DownloadError(.invalidRequest, "the range \(range.field) is empty: request at least one byte")
      }
    }

    /// The log-in for a URL; `nil` for an anonymous one. A place that a server has named gets none.
    private func logIn(for location: FileLocation, _ request: SourceRequest) throws(DownloadError) -> FileLogIn? {
      guard !request.isNamedByServer else { return nil }
      func netrc(_ user: String?) throws(DownloadError) -> FileLogIn? {
        guard let entry = configuration.netrc?.login(for: location.origin, user: user) else { return nil }
        return try FileLogIn(user: entry.user, password: entry.password)
      }
      if var logIn = location.logIn {
        if logIn.password == nil { logIn.password = try netrc(logIn.user)?.password }
        return logIn
      }
      if let logIn = try FileLogIn(authorization: request.headers["Authorization"]) { return logIn }
      if let entry = configuration.credentials.first(where: { $0.origin == location.origin }) {
        return try FileLogIn(user: entry.user, password: entry.password)
      }
      return try netrc(nil)
    }

    private func protocolRequest(
      _ location: FileLocation, _ logIn: FileLogIn?, from start: Int64, asksOnly: Bool
    ) -> any ProtocolRequest {
      if location.scheme == .sftp {
        // As ssh(1) does.
        return SFTPRequest(
          start: start, asksOnly: asksOnly, user: logIn?.user ?? NSUserName(), password: logIn?.password,
          settings: configuration.ssh,
          origin: location.origin)
      }
      return FTPRequest(
        start: start, logIn: logIn, encryption: location.scheme == .ftps ? .required : configuration.encryption,
        isImplicit: location.scheme == .ftps, asksOnly: asksOnly)
    }

    // MARK: The reply

    /// MDTM and SFTP state whole seconds, and no clock of the server tells how long ago that was. A file that has not
    /// changed for a day by the clock of this machine counts as settled: a second change in the same second would have
    /// been seen.
    private static let settlingTime: TimeInterval = 24 * 60 * 60

    private static func validator(of file: ResponseHead.FileFacts) -> Validator? {
      file.modified.map { modified in
        Validator(
          lastModified: Date(timeIntervalSince1970: TimeInterval(modified)), responseDate: Date() - settlingTime + 60)
      }
    }

    private func reply(
      _ response: PendingResponse, _ file: ResponseHead.FileFacts, _ range: RequestedRange?, _ servesRanges: Bool?,
      _ location: FileLocation, _ request: SourceRequest
    ) throws(DownloadError) -> SourceReply {
      if let size = file.size, let maximum = configuration.maximumSize, size > maximum {
        response.discard()
        throw PendingResponse.tooLarge(maximum)
      }
      var reply = SourceReply(
        coverage: .whole, length: file.size.map { .known($0) } ?? .unknown, validator: Self.validator(of: file),
        suggestedName: location.name, finalURL: request.url,
        acceptsRanges: servesRanges ?? (request.range == nil ? nil : true), body: .empty)
      guard !file.isBehindEnd else {
        reply.coverage = .none(.rangeNotSatisfiable(total: file.size.map { .known($0) } ?? .unknown))
        reply.length = .known(0)
        response.discard()
        return reply
      }
      var count: Int64?
      if let size = file.size {
        guard let bytes = try reply.serve(range, of: size) else {
          response.discard()
          return reply
        }
        // The server sends the rest of the file.
        if bytes.upperBound < size { count = Int64(bytes.count) }
      }
      reply.body = body(
        response, count, request.pace, limit: configuration.maximumSize.map { $0 - (range?.start ?? 0) })
      return reply
    }

    /// - Parameter count: The number of bytes after which the connection is closed; `nil` for all that come.
    private func body(_ response: PendingResponse, _ count: Int64?, _ pace: TransferPace, limit: Int64?) -> Body {
      .pushing(discard: { response.discard() }) { sink in
        guard let count else { return try await response.push(into: sink, pace: pace, limit: limit) }
        do {
          return try await response.push(into: PrefixSink(count, sink).take, pace: pace, limit: nil)
        } catch is PrefixSink.Full { return Body.End() }
      }
    }

    // MARK: Threads

    /// Always the same thread for an origin, which has connections to it, while it has not much more to do than another.
    private func thread(for origin: Origin) throws(DownloadError) -> CurlThread {
      let threads = try threads.withLock { (threads) throws(DownloadError) in
        while threads.count < Self.threadCount {
          threads.append(try CurlThread("downpipe.ftp.\(threads.count + 1)", configuration.curlSettings))
        }
        return threads
      }
      var hasher = Hasher()
      hasher.combine(origin)
      let home = threads[Int(UInt(bitPattern: hasher.finalize()) % UInt(threads.count))]
      let least = threads.min { $0.load.load(ordering: .relaxed) < $1.load.load(ordering: .relaxed) } ?? home
      // A transfer that has just ended may still count.
      return least.load.load(ordering: .relaxed) + 1 < home.load.load(ordering: .relaxed) ? least : home
    }
  }

  /// The file that the user has, as far as a server of FTP or SFTP can say whether it has the same.
  private struct WantedFile {
    let modified: Date
    let size: Int64

    /// `nil` when no reply could prove it: an entity tag is not of these protocols, and a date of a file that was young when
    /// its bytes came does not identify them.
    init?(_ request: SourceRequest) {
      guard request.range == nil, let condition = request.condition, condition.entityTag == nil,
        let modified = condition.strongLastModified, let size = request.conditionSize
      else { return nil }
      (self.modified, self.size) = (modified, size)
    }

    /// Exactly: an older file is another one.
    func isSame(as file: ResponseHead.FileFacts) -> Bool {
      file.size == size && file.modified.map { Date(timeIntervalSince1970: TimeInterval($0)) } == modified
    }
  }

  /// The server refuses `REST`: it has no ranges.
  struct RangesRefused: Error {}

  /// Passes on the first bytes of a body, and ends it then.
  private final class PrefixSink: Sendable {
    struct Full: Error {}

    private let left: Atomic<Int64>
    private let sink: ChunkSink

    init(_ count: Int64, _ sink: @escaping ChunkSink) {
      left = Atomic(count)
      self.sink = sink
    }

    @Sendable func take(_ bytes: RawSpan) throws {
      let wanted = left.load(ordering: .relaxed)
      guard Int64(bytes.byteCount) >= wanted else {
        left.store(wanted - Int64(bytes.byteCount), ordering: .relaxed)
        return try sink(bytes)
      }
      try sink(bytes.extracting(first: Int(wanted)))
      throw Full()
    }
  }
#endif
