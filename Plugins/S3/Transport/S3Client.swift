#if LIBCURL
  import DownpipeCore
  import DownpipeHTTP
  import Foundation
  import Synchronization

  /// The threads and connections for an object storage, and what was learnt of it: regions, abilities.
  final class S3Client: Sendable {
    /// Hashes and copies are most of the work: two threads serve a fast network.
    private static let threadCount = 2
    /// The largest answer that is read into memory: a page of a listing has about half a MiB.
    static let longestAnswer = 8 << 20

    private struct Learnt {
      var threads: [CurlThread] = []
      var nextThread = 0
      /// The regions of buckets, as the storage has named them.
      var regions: [String: String] = [:]
      /// Whether the storage knows conditions of uploads in one request.
      var hasConditionalPut = true
    }

    let configuration: S3.Configuration
    private let endpoint: S3Endpoint
    private let keys: KeyCache
    private let names = NameLookup()
    private let learnt = Mutex(Learnt())

    init(_ configuration: S3.Configuration) throws(DownloadError) {
      guard CurlLibrary.version > 0 else {
        throw DownloadError(.invalidPipeline, "libcurl does not start: check its installation")
      }
      try configuration.check()
      self.configuration = configuration
      endpoint = try S3Endpoint(configuration)
      keys = KeyCache(configuration)
    }

    deinit {
      for thread in learnt.withLock({ $0.threads }) { thread.abandon() }
    }

    /// Whether the storage is AWS itself.
    var isAWS: Bool { endpoint.base == nil }

    /// Ends all requests and closes all connections. A later request opens new ones.
    func stop() async {
      let threads = learnt.withLock { learnt in
        defer { learnt.threads = [] }
        return learnt.threads
      }
      for thread in threads { await thread.stop() }
    }

    var hasConditionalPut: Bool {
      get { learnt.withLock { $0.hasConditionalPut } }
      set { learnt.withLock { $0.hasConditionalPut = newValue } }
    }

    // MARK: Requests

    /// Sends a request and reads the answer. What may succeed later is tried again, after a pause.
    ///
    /// - Parameter isAnswer: Whether a status that is not 2xx is an answer as well, such as 404.
    /// - Throws: ``S3Failure`` for a refusal; `DownloadError` if there was no answer; `CancellationError`.
    func send(_ call: S3Call, isAnswer: (S3Failure) -> Bool = { _ in false }) async throws -> S3Answer {
      let backOff = BackOff.exponential(attempts: configuration.attempts, base: .milliseconds(200), cap: .seconds(20))
      var attempt = 1
      while true {
        let failure: any Error
        var pause: Duration?
        do {
          let (head, response, failure) = try await open(call)
          guard let failure else {
            let answer = S3Answer(status: head.status, fields: head.fields, body: try await Self.body(response))
            if call.method == .post, let failure = answer.lateFailure { throw failure }
            return answer
          }
          throw failure
        } catch let refusal as S3Failure {
          if isAnswer(refusal) { return S3Answer(status: refusal.status, fields: [:], body: []) }
          guard refusal.isTemporary else { throw refusal }
          failure = refusal
          pause = refusal.retryAfter?.delay(from: configuration.time.date)
        } catch let error as DownloadError where Self.mayPass(error) {
          failure = error
        }
        guard attempt < configuration.attempts else { throw failure }
        let delay = max(
          backOff.delay(afterFailures: attempt, random: .random(in: 0..<1)), min(pause ?? .zero, .seconds(60)))
        try await configuration.time.sleep(for: delay, purpose: .retry)
        attempt += 1
      }
    }

    /// Sends a request, and returns when the head of the answer has arrived. Another region and expired keys are mended once each.
    ///
    /// - Returns: The head, the response with the body, and what the storage has refused; then the body was read.
    func open(_ call: S3Call) async throws -> (ResponseHead, PendingResponse, S3Failure?) {
      var mended: Set<String> = []
      let known = await region(of: call.bucket)
      var region = known
      while true {
        let keys = call.isSigned ? try await keys.keys() : nil
        let (head, response) = try await start(call, region, keys)
        guard head.status >= 300, head.status != 304 else {
          if region != known { learnt.withLock { $0.regions[call.bucket] = region } }
          return (head, response, nil)
        }
        let body = try await Self.body(response)
        let failure = S3Failure(status: head.status, fields: head.fields, body: body)
        if let named = failure.region, named != region, [301, 307, 400, 403].contains(head.status),
          (1...64).contains(named.utf8.count), named.utf8.allSatisfy({ $0.isUnreserved && $0 != UInt8(ascii: ".") }),
          mended.insert("region").inserted
        {
          region = named
          continue
        }
        if failure.needsNewCredentials, call.isSigned, keys != nil, mended.insert("keys").inserted,
          await self.keys.renew(keys)
        {
          continue
        }
        return (head, response, failure)
      }
    }

    private func region(of bucket: String) async -> String {
      if let region = learnt.withLock({ $0.regions[bucket] }) ?? configuration.region { return region }
      return await keys.region ?? "us-east-1"
    }

    private func start(
      _ call: S3Call, _ region: String, _ keys: S3Keys?
    ) async throws -> (ResponseHead, PendingResponse) {
      var url = endpoint.url(bucket: call.bucket, key: call.key, region: region)
      if !call.query.isEmpty { url += "?" + call.queryText }
      guard let parsed = URL(string: url), let origin = Origin(parsed) else {
        throw DownloadError(.invalidPipeline, "the bucket “\(call.bucket.escaped)” has no URL at this storage")
      }
      var fields = call.fields
      fields["User-Agent"] = configuration.connections.userAgent ?? "downpipe"
      var signature: HTTPOrder.Signature?
      if let keys {
        fields["x-amz-content-sha256"] = call.digest
        if let token = keys.token { fields["x-amz-security-token"] = token }
        if let date = configuration.signingDate { fields["X-Amz-Date"] = Self.timestamp(date) }
        signature = HTTPOrder.Signature(region: region, service: "s3", keyID: keys.id, secret: keys.secret)
      }
      let order = HTTPOrder(
        call.method, fields: fields, body: call.body, signature: signature,
        version: configuration.connections.httpVersion)
      let addresses = try await names.addresses(
        for: origin, fixed: configuration.connections.resolve,
        mayUseProxy: configuration.connections.proxy.mayLookNamesUp(blocksPrivateAddresses: false),
        within: configuration.connections.connectTimeLimit)
      let response = PendingResponse(try thread(), of: self)
      let head = try await response.start { id in
        Order(
          id: id, url: url, addresses: addresses,
          deadline: configuration.connections.totalTimeLimit.map { ContinuousClock.now + $0 }, showsCertificate: true,
          lease: call.lease, request: order)
      }
      return (head, response)
    }

    /// A time as signatures have it.
    static func timestamp(_ date: Date) -> String {
      date.formatted(.iso8601.dateSeparator(.omitted).timeSeparator(.omitted))
    }

    /// The thread for the next request: one after the other.
    private func thread() throws(DownloadError) -> CurlThread {
      try learnt.withLock { (learnt) throws(DownloadError) in
        while learnt.threads.count < Self.threadCount {
          learnt.threads.append(
            try CurlThread("downpipe.s3.\(learnt.threads.count + 1)", configuration.connections.curlSettings))
        }
        learnt.nextThread = (learnt.nextThread + 1) % learnt.threads.count
        return learnt.threads[learnt.nextThread]
      }
    }

    static func body(_ response: PendingResponse) async throws -> [UInt8] {
      let bytes = Mutex<[UInt8]>([])
      try await response.push(
        into: { chunk in bytes.withLock { list in chunk.withUnsafeBytes { list.append(contentsOf: $0) } } },
        pace: .unlimited, limit: Int64(longestAnswer))
      return bytes.withLock { $0 }
    }

    /// Failures of the network, after which a request may succeed. Every request may be sent twice: see the calls.
    private static func mayPass(_ error: DownloadError) -> Bool {
      [.network, .offline, .timedOut, .hostNotFound].contains(error.code)
    }
  }

  extension SleepPurpose {
    /// Until a request to the object storage is tried again.
    static let retry = SleepPurpose("objectStorageRetry")
  }
#endif
