public import DownpipeCore
public import Foundation

/// A source that replies from a script, without a network.
///
/// ```swift
/// let source = FakeSource([
///   url: [
///     .init(bytes).failing(after: 1_000, with: DownloadError(.network, "the cable was cut")),
///     .init(bytes),                                     // the second opening, and every one after it
///   ]
/// ])
/// ```
/// Like a correct server it serves ranges, answers conditional requests, and the whole file when the validator of the request (`If-Range`) does not
/// match. ``Script`` can make each part of the reply wrong.
public final class FakeSource: Source, SourceSession {
  /// The reply to one opening of a URL.
  public struct Script: Sendable {
    /// The file's bytes.
    public var bytes: [UInt8]
    /// The validator of the reply; by default a strong entity tag computed from the bytes.
    public var validator: Validator?
    /// Whether a requested range is served (206); otherwise the whole file is (200).
    public var honoursRanges = true
    /// Whether a request with the validator of the file as its condition is answered without bytes; otherwise with the
    /// whole file.
    public var honoursConditions = true
    /// How long the reply is fresh; `nil` when it does not say.
    public var freshFor: Duration?
    /// Whether the reply has the length of its body, and a range the length of the file.
    public var announcesLength = true
    /// The maximum size of a chunk, in bytes.
    public var chunkSize = 16_384
    /// The error that opening throws; none when `nil`.
    public var openingError: (any Error)?
    /// A refusal without bytes, such as `.status(503)`; none when `nil`.
    public var refusal: Coverage.Refusal?
    /// A coverage that replaces the correct one in the reply.
    public var claimedCoverage: Coverage?
    /// A length that replaces the correct one in the reply.
    public var claimedLength: ByteCount?
    /// The number of body bytes before the failure, and its error.
    public var failure: (after: Int, error: any Error)?
    /// The number of body bytes after which the body waits for ``FakeSource/release()``.
    public var holdPoint: Int?
    /// The content coding of the reply.
    public var contentCoding: String?
    /// The file name that the reply suggests.
    public var suggestedName: String?
    /// The media type of the reply.
    public var mediaType: String?
    /// The digests in the reply.
    public var digests: [FileDigest] = []
    /// The digests that the body reports at its end, as in a trailer.
    public var trailerDigests: [FileDigest] = []
    /// Whether the end of the body is unconfirmed, as when TLS ends without a closure alert; see
    /// ``/DownpipeCore/Body/End/isUnconfirmed``.
    public var endsUnconfirmed = false
    /// The URL after redirects.
    public var finalURL: URL?
    /// The URLs that were requested after the first one.
    public var redirects: [URL] = []
    /// The other URLs of the same file that the reply names.
    public var duplicates: [URL] = []
    /// The `Retry-After` of the reply.
    public var retryAfter: RetryAfter?

    /// Serves the bytes like a correct server.
    public init(_ bytes: [UInt8]) {
      self.bytes = bytes
      validator = Validator(entityTag: EntityTag(Self.fingerprint(bytes)))
    }

    /// FNV-1a over words of eight bytes: the same bytes have the same tag in every process.
    private static func fingerprint(_ bytes: [UInt8]) -> String {
      var hash: UInt64 = 0xCBF2_9CE4_8422_2325
      let words = bytes.count / 8
      // A plain loop over plain pointers: unoptimized builds hash many megabytes, too.
      bytes.withUnsafeBufferPointer { memory in
        memory.baseAddress?.withMemoryRebound(to: UInt64.self, capacity: words) { pointer in
          var index = 0
          while index < words {
            hash = (hash ^ UInt64(littleEndian: pointer[index])) &* 0x100_0000_01B3
            index += 1
          }
        }
      }
      for byte in bytes[(words * 8)...] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
      return String(hash ^ UInt64(bytes.count), radix: 16)
    }

    /// Answers with a status and no bytes.
    public static func status(_ status: Int, retryAfter: RetryAfter? = nil) -> Script {
      var script = Script([])
      script.validator = nil
      script.refusal = .status(status)
      script.retryAfter = retryAfter
      return script
    }

    /// Throws an error when the URL is opened.
    public static func failingToOpen(_ error: any Error) -> Script {
      var script = Script([])
      script.openingError = error
      return script
    }

    /// Returns a copy whose body fails after `count` bytes.
    public func failing(after count: Int, with error: any Error) -> Script {
      with { $0.failure = (count, error) }
    }

    /// Returns a copy whose body waits for ``FakeSource/release()`` after `count` bytes.
    public func holding(after count: Int) -> Script {
      with { $0.holdPoint = count }
    }

    /// Returns a copy with the changes of the closure.
    public func with(_ change: (inout Script) -> Void) -> Script {
      var copy = self
      change(&copy)
      return copy
    }
  }

  private struct State {
    var scripts: [URL: ArraySlice<Script>]
    var everyURL: Script?
    var requests: [SourceRequest] = []
    var holding = 0
    var isReleased = false
    var pushing = 0
    var discarded = 0
    var starts: [SourceContext] = []
    var stops = 0
  }

  private let state: Watched<State>
  /// The name in messages.
  public let name: String
  private let decoders: [String: any PostProcessor<File, File>]

  /// Creates a source that accepts the URLs of the scripts. Each opening uses the next script of its URL; the last one
  /// repeats.
  /// - Parameters:
  ///   - scripts: The scripts of each URL.
  ///   - name: The name in messages.
  ///   - decoders: The steps that remove content codings, by the names of the codings.
  public init(
    _ scripts: [URL: [Script]] = [:], name: String = "FakeSource",
    decoders: [String: any PostProcessor<File, File>] = [:]
  ) {
    state = Watched(State(scripts: scripts.mapValues { $0[...] }))
    self.name = name
    self.decoders = decoders
  }

  /// Creates a source that accepts every URL and always replies with the same script.
  public init(everyURL script: Script, name: String = "FakeSource") {
    state = Watched(State(scripts: [:], everyURL: script))
    self.name = name
    decoders = [:]
  }

  /// Replaces the remaining scripts of a URL.
  public func script(_ url: URL, _ scripts: Script...) {
    state.update { $0.scripts[url] = scripts[...] }
  }

  /// The requests so far, in order.
  public var requests: [SourceRequest] { state.value.requests }
  /// The number of bodies that are being read.
  public var readers: Int { state.value.pushing }
  /// The number of bodies that were discarded.
  public var discarded: Int { state.value.discarded }
  /// The contexts of its starts, in order.
  public var starts: [SourceContext] { state.value.starts }
  /// The number of stops.
  public var stops: Int { state.value.stops }

  /// Waits for at least `count` requests. Returns early when the waiting task is cancelled.
  public func requests(atLeast count: Int) async {
    await state.wait { $0.requests.count >= count }
  }

  /// Waits until at least `count` bodies wait at their hold point. Returns early when the waiting task is cancelled.
  public func held(atLeast count: Int) async {
    await state.wait { $0.holding >= count }
  }

  /// Releases the bodies at their hold point, and those that reach it later.
  public func release() {
    state.update { $0.isReleased = true }
  }

  /// Returns whether the URL has a script.
  public func accepts(_ url: URL) -> Bool {
    state.value.everyURL != nil || state.value.scripts[url] != nil
  }

  /// Returns the decoder that the source was created with.
  public func decoder(for coding: String) -> (any PostProcessor<File, File>)? { decoders[coding] }

  /// Records the start and returns itself.
  public func start(in context: SourceContext) async throws -> any SourceSession {
    state.update { $0.starts.append(context) }
    return self
  }

  /// Records the stop.
  public func stop() async {
    state.update { $0.stops += 1 }
  }

  /// Answers with the next script of the URL.
  public func open(_ request: SourceRequest) async throws -> SourceReply {
    try Task.checkCancellation()
    let script = state.update { state -> Script? in
      state.requests.append(request)
      guard let scripts = state.scripts[request.url], let first = scripts.first else { return state.everyURL }
      if scripts.count > 1 { state.scripts[request.url] = scripts.dropFirst() }
      return first
    }
    guard let script else {
      throw DownloadError(.unsupportedURL, "there is no script for \(request.url): give it one", stage: name)
    }
    if let error = script.openingError { throw error }

    let (coverage, bytes) = script.serve(request)
    let body = bytes[...]
    return SourceReply(
      coverage: script.claimedCoverage ?? coverage,
      length: script.claimedLength ?? (script.announcesLength ? .known(Int64(body.count)) : .unknown),
      validator: script.validator, contentCoding: script.contentCoding, suggestedName: script.suggestedName,
      mediaType: script.mediaType, digests: script.digests, finalURL: script.finalURL ?? script.redirects.last,
      redirects: script.redirects, retryAfter: script.retryAfter, freshFor: script.freshFor,
      acceptsRanges: script.honoursRanges,
      duplicates: script.duplicates,
      body: .pushing(discard: { self.state.update { $0.discarded += 1 } }) { sink in
        self.state.update { $0.pushing += 1 }
        defer { self.state.update { $0.pushing -= 1 } }
        try await self.push(body, as: script, pace: request.pace, into: sink)
        return Body.End(digests: script.trailerDigests, isUnconfirmed: script.endsUnconfirmed)
      })
  }

  private func push(
    _ bytes: ArraySlice<UInt8>, as script: Script, pace: TransferPace, into sink: ChunkSink
  ) async throws {
    // Chunks are split at these positions, so that holds and failures happen after the exact number of bytes.
    let stops = [script.holdPoint, script.failure?.after].compactMap { $0 }.filter { $0 > 0 }
    var sent = 0
    while true {
      try Task.checkCancellation()
      if sent == script.holdPoint {
        state.update { $0.holding += 1 }
        await state.wait { $0.isReleased }
        state.update { $0.holding -= 1 }
        try Task.checkCancellation()
      }
      if let failure = script.failure, sent >= failure.after { throw failure.error }
      guard sent < bytes.count else { return }
      var end = min(bytes.count, sent + max(1, script.chunkSize))
      for stop in stops where sent < stop && stop < end { end = stop }
      try sink(bytes[(bytes.startIndex + sent)..<(bytes.startIndex + end)].span.bytes)
      try await pace.keep(after: end - sent)
      sent = end
    }
  }
}

extension FakeSource.Script {
  /// The bytes for a request, and their coverage.
  fileprivate func serve(_ request: SourceRequest) -> (Coverage, [UInt8]) {
    if let refusal { return (.none(refusal), []) }
    if honoursConditions, request.range == nil, request.condition?.isUnmodified(in: validator) == true {
      return (.none(.notModified), [])
    }
    let total = Int64(bytes.count)
    guard honoursRanges, let range = request.range, range.start >= 0, range.end.map({ $0 > range.start }) ?? true
    else { return (.whole, bytes) }
    // RFC 9110 §13.1.5: a range only when the condition holds, otherwise the whole file.
    if let condition = request.validator, condition.ifRange != nil, condition.compare(to: validator) != .sameStrong {
      return (.whole, bytes)
    }
    guard range.start < total else {
      return (.none(.rangeNotSatisfiable(total: announcesLength ? .known(total) : .unknown)), [])
    }
    let served = range.start..<min(range.end ?? total, total)
    return (
      .range(served, total: announcesLength ? .known(total) : .unknown),
      Array(bytes[Int(served.lowerBound)..<Int(served.upperBound)])
    )
  }
}
