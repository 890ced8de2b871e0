public import DownpipeCore
public import Foundation

/// A source that answers from a script, without network.
///
/// ```swift
/// let source = FakeSource([
///   url: [
///     .init(bytes).failing(after: 1_000, with: DownloadError(.network, "the cable was cut")),
///     .init(bytes),                                     // the second opening, and every one after it
///   ]
/// ])
/// ```
/// Like a good server it serves ranges, and the whole file when the validator of the request (`If-Range`)
/// is not that of the file. Each part of that can be made wrong: see ``Script``.
public final class FakeSource: Source, SourceSession {
  /// What one opening of a URL gives.
  public struct Script: Sendable {
    /// The file's bytes.
    public var bytes: [UInt8]
    /// Which representation they are; a strong entity tag made from the bytes unless set.
    public var validator: Validator?
    /// Whether a range is served as one (206); otherwise the whole is sent (200).
    public var honoursRanges = true
    /// Whether the reply says how long its body is, and a range how long the whole is.
    public var announcesLength = true
    /// The most bytes that are pushed at once.
    public var chunkSize = 16_384
    /// Makes opening fail.
    public var openingError: (any Error)?
    /// Answers without bytes, such as `.status(503)`.
    public var refusal: Coverage.Refusal?
    /// Says something else of the bytes than what they are.
    public var claimedCoverage: Coverage?
    /// Says another length of the body than it has.
    public var claimedLength: ByteCount?
    /// The body's bytes after which it fails, and the error it fails with.
    public var failure: (after: Int, error: any Error)?
    /// The body's bytes after which it waits for ``FakeSource/release()``.
    public var holdPoint: Int?
    /// The coding the bytes are in.
    public var contentCoding: String?
    /// The name the reply suggests.
    public var suggestedName: String?
    /// The media type of the reply.
    public var mediaType: String?
    /// The digests the reply promises.
    public var digests: [FileDigest] = []
    /// Where a redirect led.
    public var finalURL: URL?
    /// How long the reply asks to be left alone.
    public var retryAfter: RetryAfter?

    /// Serves bytes as a good server does.
    public init(_ bytes: [UInt8]) {
      self.bytes = bytes
      validator = Validator(entityTag: EntityTag(Self.fingerprint(bytes)))
    }

    /// FNV-1a over words of eight bytes: the same bytes have the same tag in every process.
    private static func fingerprint(_ bytes: [UInt8]) -> String {
      var hash: UInt64 = 0xCBF2_9CE4_8422_2325
      bytes.withUnsafeBytes { memory in
        var index = 0
        while memory.count - index >= 8 {
          let word = UInt64(littleEndian: memory.loadUnaligned(fromByteOffset: index, as: UInt64.self))
          hash = (hash ^ word) &* 0x100_0000_01B3
          index += 8
        }
        for byte in memory[index...] { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
      }
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

    /// Does not answer.
    public static func failingToOpen(_ error: any Error) -> Script {
      var script = Script([])
      script.openingError = error
      return script
    }

    /// The same, but its body fails after so many of its bytes.
    public func failing(after count: Int, with error: any Error) -> Script {
      with { $0.failure = (count, error) }
    }

    /// The same, but its body waits after so many of its bytes for ``FakeSource/release()``.
    public func holding(after count: Int) -> Script {
      with { $0.holdPoint = count }
    }

    /// The same, but changed.
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

  /// Makes a source that takes the URLs of the scripts; the last script of a URL is used again and again.
  public init(_ scripts: [URL: [Script]] = [:], name: String = "FakeSource") {
    state = Watched(State(scripts: scripts.mapValues { $0[...] }))
    self.name = name
  }

  /// Makes a source that takes every URL and answers the same each time.
  public init(everyURL script: Script, name: String = "FakeSource") {
    state = Watched(State(scripts: [:], everyURL: script))
    self.name = name
  }

  /// Replaces what is left of a URL's script.
  public func script(_ url: URL, _ scripts: Script...) {
    state.update { $0.scripts[url] = scripts[...] }
  }

  /// What it was asked for, in order.
  public var requests: [SourceRequest] { state.value.requests }
  /// How many bodies are being read at the moment.
  public var readers: Int { state.value.pushing }
  /// How many bodies were discarded.
  public var discarded: Int { state.value.discarded }
  /// The contexts it was started in, in order.
  public var starts: [SourceContext] { state.value.starts }
  /// How often it was stopped.
  public var stops: Int { state.value.stops }

  /// Waits until it was asked at least `count` times. Returns early when the waiting task is cancelled.
  public func requests(atLeast count: Int) async {
    await state.wait { $0.requests.count >= count }
  }

  /// Waits until at least `count` bodies wait at their hold point. Returns early when the waiting task is cancelled.
  public func held(atLeast count: Int) async {
    await state.wait { $0.holding >= count }
  }

  /// Lets every body go on that waits at its hold point, and every one that comes to it later.
  public func release() {
    state.update { $0.isReleased = true }
  }

  /// Whether there is a script for the URL.
  public func accepts(_ url: URL) -> Bool {
    state.value.everyURL != nil || state.value.scripts[url] != nil
  }

  /// Counts the start; the source is its own session.
  public func start(in context: SourceContext) async throws -> any SourceSession {
    state.update { $0.starts.append(context) }
    return self
  }

  /// Counts the stop.
  public func stop() async {
    state.update { $0.stops += 1 }
  }

  /// Answers as the script says.
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
      mediaType: script.mediaType, digests: script.digests, finalURL: script.finalURL, retryAfter: script.retryAfter,
      acceptsRanges: script.honoursRanges,
      body: Body(discard: { self.state.update { $0.discarded += 1 } }) { sink in
        self.state.update { $0.pushing += 1 }
        defer { self.state.update { $0.pushing -= 1 } }
        try await self.push(body, as: script, into: sink)
      })
  }

  private func push(_ bytes: ArraySlice<UInt8>, as script: Script, into sink: ChunkSink) async throws {
    // The places where something happens cut chunks, so that it happens after exactly that many bytes.
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
      sent = end
    }
  }
}

extension FakeSource.Script {
  /// The bytes for a request, and what they are.
  fileprivate func serve(_ request: SourceRequest) -> (Coverage, [UInt8]) {
    if let refusal { return (.none(refusal), []) }
    let total = Int64(bytes.count)
    guard honoursRanges, let range = request.range, range.start >= 0, range.end.map({ $0 > range.start }) ?? true
    else { return (.whole, bytes) }
    // RFC 9110 §13.1.5: a range only when the condition holds, otherwise the whole.
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
