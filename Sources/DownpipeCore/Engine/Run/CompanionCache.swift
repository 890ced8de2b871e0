internal import Foundation
internal import Synchronization

/// The replies with small files that steps fetch, such as checksum files, shared by the downloads of a downloader.
///
/// - **One request.** Downloads that ask for the same file at the same time wait for one request, which belongs to the task
///   of one of them. If that task is cancelled, the next download asks itself; any other failure is that of all of them. So
///   there is no task that could outlive its download or the downloader.
/// - **Fresh for a minute.** A copy is used for ``freshness`` after its request, or for as long as its server says if that is
///   shorter. After that the server is asked with the validator of the copy as the condition, if that is a strong one.
/// - **Bounded.** At most ``capacity`` bytes are kept; the copy that was used least recently is forgotten first. A file of more
///   than ``mostBytesOfCopy`` is shared by the downloads that wait for it, and not kept.
///
/// A ``Key`` has all that a source may use to choose its reply.
final class CompanionCache: Sendable {
  /// The most bytes of all copies, with ``overhead`` for each: 8 MiB.
  static let capacity = 8 << 20
  /// The most bytes of one copy, with ``overhead``.
  static let mostBytesOfCopy = capacity / 2 + overhead
  /// The bytes that are counted for the key and the head of a copy.
  static let overhead = 1024
  /// How long a copy is used without asking its server.
  static let freshness = Duration.seconds(60)

  /// What the reply to a request for a file depends on.
  struct Key: Hashable, Sendable {
    /// The URL that the step asks for, which selects the session of the source.
    private let url: URL
    private let sourcesVersion: Int
    /// The origin of the download, to which header fields are bound at a redirect.
    private let origin: Origin?
    /// The most bytes: a copy is never larger than the download that uses it admits.
    private let maximum: Int
    /// The request as its source gets it, without the id, the attempt, the pace and the lease of one download.
    let request: SourceRequest

    init(_ request: SourceRequest, for url: URL, by origin: Origin?, atMost maximum: Int, sourcesVersion: Int) {
      (self.url, self.origin, self.maximum, self.sourcesVersion) = (url, origin, maximum, sourcesVersion)
      self.request = SourceRequest(
        url: request.url, id: "", range: request.range, validator: request.validator, condition: request.condition,
        conditionSize: request.conditionSize, headers: request.headers, metadata: request.metadata,
        hasFreshLink: request.hasFreshLink, isNamedByServer: request.isNamedByServer)
    }
  }

  /// A whole file in memory.
  private struct Copy: Sendable {
    let reply: SourceReply
    /// The number of the request that has brought or confirmed the file.
    let number: UInt64
    let freshUntil: Duration
    var size: Int { Int(reply.length.bytes ?? 0) + CompanionCache.overhead }
  }

  /// A request on its way.
  private final class Flight: Sendable {
    enum End: Sendable {
      case result(Result<SourceReply, any Error>)
      /// The task of the request was cancelled.
      case cancelled
    }

    let number: UInt64
    private let end = Monitor<End?>(nil)

    init(number: UInt64) { self.number = number }

    var waiting: Int { end.waiting }

    func finish(_ new: End) { end.update { $0 = new } }

    /// The result of the request; `nil` if it was cancelled.
    /// - Throws: `CancellationError` when the waiting task is cancelled.
    func wait() async throws -> Result<SourceReply, any Error>? {
      try await end.wait { $0 != nil }
      if case .result(let result) = end.value { return result }
      return nil
    }
  }

  private enum Step: Sendable {
    case use(SourceReply)
    case wait(Flight)
    /// Ask the server, with the condition that the file is not this one.
    case ask(Flight, SourceReply?)
  }

  private struct State: Sendable {
    /// The copy that was used least recently comes first.
    var copies = OrderedTable<Key, Copy>()
    var flights: [Key: Flight] = [:]
    var size = 0
    var lastNumber: UInt64 = 0

    mutating func next(_ key: Key, after number: UInt64?, at now: Duration) -> Step {
      if let flight = flights[key] { return .wait(flight) }
      let copy = remove(key)
      if let copy, now < copy.freshUntil, number.map({ copy.number > $0 }) ?? true {
        insert(copy, key)
        return .use(copy.reply)
      }
      lastNumber += 1
      let flight = Flight(number: lastNumber)
      flights[key] = flight
      // Entity tags that stay while the content changes exist: a step that asks again gets the whole file.
      return .ask(flight, number == nil ? copy?.reply : nil)
    }

    @discardableResult
    mutating func remove(_ key: Key) -> Copy? {
      guard let copy = copies.removeValue(forKey: key) else { return nil }
      size -= copy.size
      return copy
    }

    mutating func insert(_ copy: Copy, _ key: Key) {
      guard copy.size <= CompanionCache.mostBytesOfCopy else { return }
      copies[key] = copy
      size += copy.size
      while size > CompanionCache.capacity, let first = copies.first { remove(first.key) }
    }
  }

  private let state = Mutex(State())

  /// The number of the latest request.
  var lastNumber: UInt64 { state.withLock { $0.lastNumber } }

  /// The bytes of all copies, with ``overhead`` for each.
  var size: Int { state.withLock { $0.size } }

  /// The number of tasks that wait for a request of another task, for tests.
  func waiting(_ key: Key) -> Int { state.withLock { $0.flights[key] }?.waiting ?? 0 }

  /// Returns the reply for a key: a copy, or that of a request, which other downloads may be waiting for, too.
  ///
  /// - Parameters:
  ///   - key: What the reply depends on.
  ///   - number: Only the reply of a request with a later number is returned; `nil` for any that is fresh.
  ///   - time: The clock of the downloader.
  ///   - ask: Sends a request with a condition, or with none, and returns its reply, whose body is in memory.
  /// - Throws: The error of the request, or `CancellationError`.
  func reply(
    for key: Key, after number: UInt64? = nil, time: any TimeSource,
    ask: @Sendable (_ condition: SourceReply?) async throws -> SourceReply
  ) async throws -> SourceReply {
    while true {
      try Task.checkCancellation()
      switch state.withLock({ $0.next(key, after: number, at: time.now) }) {
      case .use(let reply): return reply
      case .wait(let flight):
        let result = try await flight.wait()
        if let result, number.map({ flight.number > $0 }) ?? true { return try result.get() }
      case .ask(let flight, let stale):
        let asked = time.now
        do {
          let reply = try await Self.reply(for: key, unless: stale, ask)
          finish(flight, key, .result(.success(reply)), asked: asked)
          return reply
        } catch {
          let isCancelled = error is CancellationError || Task.isCancelled
          finish(flight, key, isCancelled ? .cancelled : .result(.failure(error)), asked: asked)
          throw error
        }
      }
    }
  }

  private func finish(_ flight: Flight, _ key: Key, _ end: Flight.End, asked: Duration) {
    state.withLock { state in
      state.flights[key] = nil
      guard case .result(.success(let reply)) = end, reply.isCompleteFile, key.isForWholeFile else { return }
      let fresh = min(reply.freshFor ?? Self.freshness, Self.freshness)
      state.insert(Copy(reply: reply, number: flight.number, freshUntil: asked + fresh), key)
    }
    flight.finish(end)
  }

  /// Asks for a file, of which there may be a stale copy.
  private static func reply(
    for key: Key, unless stale: SourceReply?, _ ask: @Sendable (SourceReply?) async throws -> SourceReply
  ) async throws -> SourceReply {
    guard let stale, let validator = stale.validator, validator.isStrong, validator.conditionField != nil else {
      return try await ask(nil)
    }
    let reply = try await ask(stale)
    switch reply.coverage {
    case .none(.notModified):
      let resources = [stale, reply].map { ($0.finalURL ?? key.request.url).resourceKey }
      // A statement about another resource or another version says nothing about the copy.
      guard resources[0] == resources[1], validator.compare(to: reply.validator) != .changed else {
        return try await ask(nil)
      }
      var same = stale
      same.freshFor = reply.freshFor
      return same
    case .none(.preconditionFailed): return try await ask(nil)
    default: return reply
    }
  }
}

extension CompanionCache.Key {
  /// Whether the request is for the whole file: an interceptor may have asked for something else.
  fileprivate var isForWholeFile: Bool { request.range == nil && request.condition == nil }
}

extension SourceReply {
  /// Whether the reply has the whole file, without a content coding.
  fileprivate var isCompleteFile: Bool { coverage == .whole && ContentCoding(contentCoding) == nil }
}
