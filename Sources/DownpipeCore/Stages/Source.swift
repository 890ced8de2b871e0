public import Foundation

/// Says which URLs it takes, and starts the session that opens them.
///
/// A source decides how bytes are fetched. It never writes files, retries or resumes: it asks for
/// the range it is told to, and reports faithfully what came back; `ResumePlan` does the rest.
///
/// A source that holds nothing over its openings is its own session:
/// ```swift
/// struct Greeting: Source, SourceSession {
///   func accepts(_ url: URL) -> Bool { url.scheme == "greeting" }
///   func open(_ request: SourceRequest) async throws -> SourceReply {
///     SourceReply(coverage: .whole, length: .known(5), body: .bytes(Array("hello".utf8)))
///   }
/// }
/// ```
public protocol Source: Stage {
  /// Whether this source takes the URL. Cheap, and always the same for the same URL.
  func accepts(_ url: URL) -> Bool

  /// Called once when a downloader starts, or puts the source in another one's place: returns the session that serves
  /// it, such as one that holds a connection pool.
  /// - Throws: ``DownloadError``: the downloader does not start then.
  func start(in context: SourceContext) async throws -> any SourceSession
}

/// A started source: opens URLs and pushes their bytes.
public protocol SourceSession: Sendable {
  /// Asks for the bytes and returns once the head of the answer is there.
  ///
  /// The caller either reads the reply's body to its end or discards it. Cancelling the task ends
  /// the request.
  /// - Throws: ``DownloadError`` when there is no answer. An answer that brings no bytes (a 404, say)
  ///   is a reply with ``Coverage/none(_:)``, not an error.
  func open(_ request: SourceRequest) async throws -> SourceReply

  /// Called once: when the downloader has shut down, or when the source was replaced and no run uses the session any
  /// more. Returns when nothing of it is left.
  func stop() async
}

extension SourceSession {
  /// Nothing: the session holds nothing.
  public func stop() async {}
}

extension Source where Self: SourceSession {
  /// The source itself.
  public func start(in context: SourceContext) async throws -> any SourceSession { self }
}

extension Source {
  /// Adds the source behind those that are there.
  public func contribute(to parts: inout PipelineParts) { parts.sources.append(self) }
}

/// What a source may know of the run it serves.
public struct SourceContext: Sendable, Hashable {
  /// The most downloads that run at once.
  public let concurrentDownloads: Int
  /// The most downloads that run at once from one host.
  public let downloadsPerHost: Int

  /// Makes a context.
  public init(concurrentDownloads: Int = 5, downloadsPerHost: Int = 5) {
    self.concurrentDownloads = concurrentDownloads
    self.downloadsPerHost = downloadsPerHost
  }
}

/// What a source is asked for.
public struct SourceRequest: Sendable, Hashable {
  /// Where the bytes are.
  public var url: URL
  /// Which download asks.
  public var id: DownloadID
  /// The bytes wanted; the whole when `nil`.
  public var range: RequestedRange?
  /// The validator of the bytes that are there already: goes out as `If-Range` when it is strong.
  public var validator: Validator?
  /// Header fields to send.
  public var headers: HeaderFields
  /// The attempt, counted from 1.
  public var attempt: Int
  /// Whether the attempt has just been given its link by a ``LinkRefresher``, and has to make do with it.
  public var hasFreshLink: Bool

  /// Makes a request.
  public init(
    url: URL, id: DownloadID = DownloadID(), range: RequestedRange? = nil, validator: Validator? = nil,
    headers: HeaderFields = [], attempt: Int = 1, hasFreshLink: Bool = false
  ) {
    self.url = url
    self.id = id
    self.range = range
    self.validator = validator
    self.headers = headers
    self.attempt = attempt
    self.hasFreshLink = hasFreshLink
  }
}

/// The bytes asked for: from a position on, perhaps up to another.
public struct RequestedRange: Sendable, Hashable {
  /// The first byte.
  public var start: Int64
  /// The byte after the last; up to the end of the file when `nil`.
  public var end: Int64?

  /// Makes a range.
  public init(from start: Int64, to end: Int64? = nil) {
    self.start = start
    self.end = end
  }

  /// The value of a `Range` field (RFC 9110 §14.2).
  public var field: String { "bytes=\(start)-\(end.map { String($0 - 1) } ?? "")" }
}

/// What the bytes of a reply *are*, as the reply itself says; not what was asked for.
public enum Coverage: Sendable, Hashable {
  /// The whole representation (200).
  case whole
  /// Part of it (206 with Content-Range).
  case range(ByteRange, total: ByteCount)
  /// Several parts at once (206 multipart/byteranges), which nobody asked for.
  case multipart
  /// An answer whose range cannot be read (206 without a valid Content-Range).
  case unreadable(String)
  /// No bytes of the file at all.
  case none(Refusal)

  /// Whether there is, or may be, anything of the file.
  var hasBytes: Bool {
    if case .none = self { false } else { true }
  }

  /// Why there are no bytes.
  public enum Refusal: Sendable, Hashable {
    /// 304.
    case notModified
    /// 412.
    case preconditionFailed
    /// 416, with the total when the server said it.
    case rangeNotSatisfiable(total: ByteCount)
    /// Any other status.
    case status(Int)
  }
}

/// What a source answers: the head at once, the bytes as they are pushed.
public struct SourceReply: Sendable {
  /// What the bytes are.
  public var coverage: Coverage
  /// How many bytes the body has.
  public var length: ByteCount
  /// Which representation they belong to.
  public var validator: Validator?
  /// The coding the bytes are in, such as `gzip`; `nil` for the plain bytes.
  public var contentCoding: String?
  /// The name the server suggests, as it came: unsafe.
  public var suggestedName: String?
  /// The media type.
  public var mediaType: String?
  /// Digests the server promises for the whole representation (RFC 9530 `Repr-Digest` and the like).
  public var digests: [FileDigest]
  /// The URL that answered, after redirects; the requested one when `nil`.
  public var finalURL: URL?
  /// How long the server asked to be left alone.
  public var retryAfter: RetryAfter?
  /// Whether the server promises to serve ranges; `nil` when it did not say.
  public var acceptsRanges: Bool?
  /// The bytes.
  public var body: Body

  /// Makes a reply.
  public init(
    coverage: Coverage, length: ByteCount = .unknown, validator: Validator? = nil, contentCoding: String? = nil,
    suggestedName: String? = nil, mediaType: String? = nil, digests: [FileDigest] = [], finalURL: URL? = nil,
    retryAfter: RetryAfter? = nil, acceptsRanges: Bool? = nil, body: Body
  ) {
    self.coverage = coverage
    self.length = length
    self.validator = validator
    self.contentCoding = contentCoding
    self.suggestedName = suggestedName
    self.mediaType = mediaType
    self.digests = digests
    self.finalURL = finalURL
    self.retryAfter = retryAfter
    self.acceptsRanges = acceptsRanges
    self.body = body
  }
}
