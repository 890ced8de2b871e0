public import Foundation

/// A stage that decides which URLs it accepts, and starts the session that opens them.
///
/// A source decides how bytes are fetched. It never writes files, retries or resumes: it requests the range that it is
/// given and reports exactly what the reply says. `ResumePlan` decides what to do with the reply.
///
/// A source without state can be its own session:
/// ```swift
/// struct Greeting: Source, SourceSession {
///   func accepts(_ url: URL) -> Bool { url.scheme == "greeting" }
///   func open(_ request: SourceRequest) async throws -> SourceReply {
///     SourceReply(coverage: .whole, length: .known(5), body: .bytes(Array("hello".utf8)))
///   }
/// }
/// ```
public protocol Source: Stage {
  /// Whether this source accepts the URL. It must be cheap, and must always return the same value for the same URL.
  func accepts(_ url: URL) -> Bool

  /// Returns a session that opens URLs, for example one that holds a connection pool.
  ///
  /// It is called once when a downloader starts, and once when the source replaces another one.
  /// - Throws: ``DownloadError``. The downloader then does not start, or keeps the source that was to be replaced.
  func start(in context: SourceContext) async throws -> any SourceSession

  /// Returns a step that removes a content coding (RFC 9110 §8.4) from a complete file; `nil` if the source does not
  /// decode it. The default implementation returns `nil`.
  ///
  /// The stored bytes of a file are always those that the server sent, so that they can be resumed. When they are
  /// complete, the engine removes their codings with the steps of the source that served them, before all steps of the
  /// pipeline, unless name or type say that the coded bytes are the file (`a.tar.gz`, `application/gzip`). The function
  /// must return an equivalent step after a restart of the process. If it returns `nil`, the coded bytes are published,
  /// and an event says so.
  ///
  /// The step has the contract of ``PostProcessor``. It limits its output, because 1 MiB can decode to 1 GiB, to
  /// ``DownloadRequest/maximumSize`` as well, and fails with `.tooLarge`. It returns the size of its output. Its output's
  /// name and media type are ignored.
  /// - Parameter coding: One coding, in lower case and under its registered name, such as `gzip` or `br`.
  func decoder(for coding: String) -> (any PostProcessor<File, File>)?
}

/// A started source, which opens URLs and pushes their bytes.
public protocol SourceSession: Sendable {
  /// Sends the request and returns when the head of the reply has arrived.
  ///
  /// While it pushes the body, the session keeps the request's ``SourceRequest/pace``.
  ///
  /// The caller either reads the reply's body to its end or discards it. Cancelling the task ends the request. A reply with
  /// a negative length, total or offset fails the attempt with `.invalidResponse`.
  /// - Throws: ``DownloadError`` when there is no reply. A reply without bytes of the file, such as a 404, is a reply
  ///   with ``Coverage/none(_:)`` and not an error.
  func open(_ request: SourceRequest) async throws -> SourceReply

  /// Stops the session and returns when all its resources are released.
  ///
  /// It is called once: when the downloader has shut down, or when the source was replaced and no run uses the session
  /// any more.
  func stop() async
}

extension SourceSession {
  /// The default: nothing to release.
  public func stop() async {}
}

extension Source where Self: SourceSession {
  /// Returns the source itself.
  public func start(in context: SourceContext) async throws -> any SourceSession { self }
}

extension Source {
  /// The default: `nil`.
  public func decoder(for coding: String) -> (any PostProcessor<File, File>)? { nil }

  /// Adds the source at the end of the pipeline's sources.
  public func contribute(to parts: inout PipelineParts) { parts.sources.append(self) }
}

/// The limits of the downloader that a source serves.
public struct SourceContext: Sendable, Hashable {
  /// The most downloads that run at once.
  public let concurrentDownloads: Int
  /// The most downloads that run at once from one host.
  public let downloadsPerHost: Int

  /// Creates a context.
  public init(concurrentDownloads: Int = 5, downloadsPerHost: Int = 5) {
    self.concurrentDownloads = concurrentDownloads
    self.downloadsPerHost = downloadsPerHost
  }
}

/// A request to a source.
public struct SourceRequest: Sendable, Hashable {
  /// The URL of the file.
  public var url: URL
  /// The URL of the download's request, which ``url`` is not for a mirror, a duplicate and a file beside the download.
  ///
  /// Header fields with ``HeaderField/Scope/automatic`` are bound to its origin; see ``isForOwnOrigin``.
  public internal(set) var downloadURL: URL
  /// The id of the download.
  public var id: DownloadID
  /// The bytes to fetch; `nil` for the whole file.
  public var range: RequestedRange?
  /// The validator of the stored bytes. It is sent as `If-Range` when it is strong.
  public var validator: Validator?
  /// The validator of the file that the user has; `nil` to fetch the file in any case.
  ///
  /// If the server has the same file, it replies that it is not modified: ``Coverage/Refusal/notModified``. An HTTP source
  /// sends ``Validator/ifNoneMatch`` or ``Validator/ifModifiedSince`` to the URL and to the targets of its redirects. A
  /// source that cannot tell, or has no conditional requests, replies with the whole file. A request with a range has no condition.
  public var condition: Validator?
  /// The size of the file that ``condition`` is about, in bytes as the server sent them; `nil` when it is not known.
  ///
  /// For sources that answer a condition themselves by a date: equal times of files of different sizes prove nothing. It is
  /// not sent.
  public var conditionSize: Int64?
  /// The header fields to send. The engine has removed those that must not reach the origin of the URL. A source that
  /// follows redirects removes them for each redirect to another origin; see ``HeaderField/Scope``.
  public var headers: HeaderFields
  /// The metadata of the download's request. Sources and interceptors may use it; it is not sent.
  public var metadata: [String: String]
  /// The number of the attempt, from 1.
  public var attempt: Int
  /// Whether a ``LinkRefresher`` has just supplied the link of this attempt. It is not asked again for this attempt.
  public var hasFreshLink: Bool
  /// Whether a server has named ``url``, and not the user: one of ``SourceReply/duplicates``, or a place of a request with
  /// ``DownloadRequest/isNamedByServer``.
  ///
  /// Such a place gets no credentials, because the server would choose where they go: a source sends neither passwords
  /// and tokens of its settings, nor user information of the URL, nor fields that are not for everybody (see
  /// ``HeaderField/Scope``), also those that an interceptor has added. Redirects to another origin are the same. An
  /// interceptor cannot take the mark away.
  public var isNamedByServer: Bool
  /// The pace that the source keeps while it pushes the body.
  public var pace: TransferPace
  /// The lease of the download, which the source checks right before it sends.
  public var lease: RequestLease

  /// Creates a request. `downloadURL` is the URL of the download's request; `nil` if it is `url`.
  public init(
    url: URL, downloadURL: URL? = nil, id: DownloadID = DownloadID(), range: RequestedRange? = nil,
    validator: Validator? = nil, condition: Validator? = nil, conditionSize: Int64? = nil, headers: HeaderFields = [],
    metadata: [String: String] = [:], attempt: Int = 1,
    hasFreshLink: Bool = false,
    isNamedByServer: Bool = false, pace: TransferPace = .unlimited, lease: RequestLease = .unlimited
  ) {
    self.url = url
    self.downloadURL = downloadURL ?? url
    self.id = id
    self.range = range
    self.validator = validator
    self.condition = condition
    self.conditionSize = conditionSize
    self.headers = headers
    self.metadata = metadata
    self.attempt = attempt
    self.hasFreshLink = hasFreshLink
    self.isNamedByServer = isNamedByServer
    self.pace = pace
    self.lease = lease
  }
}

/// The lease of a download that several machines may fetch, as a request sees it.
///
/// Between the decision to send a request and the request on the wire there may be minutes: a name is looked up, a connection
/// is made, the process is stopped and goes on. By then the lease may have ended, and the download, with its place among the
/// requests that the fleet's limits count, may be another machine's. A source that makes connections checks the lease again
/// when it has one, right before it sends, and ends with `CancellationError` if it is over.
///
/// The sources on libcurl (7.80 or later) do so, by FTP and SFTP after the log-in; those on SwiftNIO and Foundation check it
/// before they hand a request over.
public struct RequestLease: Sendable {
  private let validity: (@Sendable () -> Bool)?

  /// Creates a lease.
  ///
  /// - Parameter isValid: Whether the lease has not ended. It is called on any thread, and must not block.
  public init(isValid: @escaping @Sendable () -> Bool) { validity = isValid }

  private init() { validity = nil }

  /// A lease that does not end.
  public static let unlimited = RequestLease()

  /// Whether the request may be sent now.
  public var isValid: Bool { validity?() ?? true }

  /// Checks that the request may be sent now.
  /// - Throws: `CancellationError` if the lease is over.
  public func check() throws(CancellationError) {
    guard isValid else { throw CancellationError() }
  }
}

extension RequestLease: Hashable {
  /// All leases are equal: the lease of a request does not change what is requested.
  public static func == (left: Self, right: Self) -> Bool { true }
  /// Hashes nothing.
  public func hash(into hasher: inout Hasher) {}
}

extension SourceRequest {
  /// Whether the request is for the origin of the download's own URL, and no server has named its place: header fields with
  /// ``HeaderField/Scope/automatic`` are sent.
  public var isForOwnOrigin: Bool { !isNamedByServer && url.isAtOrigin(of: downloadURL) }
}

extension SourceRequest: CustomStringConvertible {
  /// The id, the URL and the range, without secrets, suitable for logs.
  public var description: String { "\(id.rawValue.redactingURLs) \(url.redacted)\(range.map { " \($0.field)" } ?? "")" }
}

/// A requested range of bytes, with or without an end.
public struct RequestedRange: Sendable, Hashable {
  /// The offset of the first byte.
  public var start: Int64
  /// The offset after the last byte; `nil` for the end of the file.
  public var end: Int64?

  /// Creates a range.
  public init(from start: Int64, to end: Int64? = nil) {
    self.start = start
    self.end = end
  }

  /// The value of the `Range` header field (RFC 9110 §14.2).
  public var field: String { "bytes=\(start)-\(end.map { String($0 - 1) } ?? "")" }
}

/// The part of the representation that a reply carries, as stated by the reply and not by the request.
public enum Coverage: Sendable, Hashable {
  /// The whole representation (200).
  case whole
  /// A part of the representation (206 with `Content-Range`).
  case range(ByteRange, total: ByteCount)
  /// Several parts at once (206 `multipart/byteranges`), which are never requested.
  case multipart
  /// A part without a readable range (206 without a valid `Content-Range`), with the reason.
  case unreadable(String)
  /// No bytes of the file.
  case none(Refusal)

  /// Whether the reply has, or may have, bytes of the file.
  var hasBytes: Bool {
    if case .none = self { false } else { true }
  }

  /// The reason why a reply has no bytes of the file.
  public enum Refusal: Sendable, Hashable {
    /// The representation has not changed (304).
    case notModified
    /// A precondition of the request failed (412).
    case preconditionFailed
    /// The range cannot be served (416), with the total size if the server sent it.
    case rangeNotSatisfiable(total: ByteCount)
    /// Any other status without bytes of the file.
    case status(Int)
  }
}

/// The reply of a source: its head, and a body that pushes the bytes.
public struct SourceReply: Sendable {
  /// The part of the representation that the body carries.
  public var coverage: Coverage
  /// The range that a reply states although its status says that it has the whole representation: a `Content-Range` beside
  /// a 200 has no meaning (RFC 9110 §14.4), but some servers send ranges like that. ``Coverage/range(_:total:)`` or `nil`.
  public var claimedRange: Coverage?
  /// The length of the body.
  public var length: ByteCount
  /// The validator of the representation; `nil` when the reply has none.
  public var validator: Validator?
  /// The content codings of the bytes in the order in which they were applied, such as `gzip` or `gzip, br`; `nil` for
  /// identity. A source whose transport has decoded the bytes gives `decoded-` and the coding: such bytes are the file,
  /// and no range continues them.
  public var contentCoding: String?
  /// The file name suggested by the server, as received. It is not safe to use as a path.
  public var suggestedName: String?
  /// The media type of the representation; `nil` when the reply does not say.
  public var mediaType: String?
  /// The digests that the server sends for the whole representation, in its content coding (RFC 9530 `Repr-Digest` and
  /// similar fields).
  public var digests: [FileDigest]
  /// The URL that served the reply, after redirects; `nil` for the requested URL.
  public var finalURL: URL?
  /// The URLs that the source requested after the first one, because of redirects; ``finalURL`` is the last one. Each
  /// is reported as an event.
  public var redirects: [URL]
  /// The delay that the server asks for before the next request.
  public var retryAfter: RetryAfter?
  /// How long the reply is fresh, counted from the request: the server promises that the file does not change before.
  /// `nil` when it promises nothing, zero when it says that the file may change at any time.
  ///
  /// At most ``longestFreshness``. A reply that says that the file is not modified has it, too.
  public var freshFor: Duration?
  /// Whether the server says that it serves ranges; `nil` when it does not say.
  public var acceptsRanges: Bool?
  /// Other URLs of the same file that the server names, best first (`Link` with the relation `duplicate`, RFC 6249).
  ///
  /// They are a hint and not proof: their bytes count only as far as they are compared or have the right digest. They
  /// are requested without credentials (``SourceRequest/isNamedByServer``). An HTTP
  /// source leaves out URLs that are not HTTP, have user information, or leave `https` for `http`.
  public var duplicates: [URL]
  /// Descriptions of the file that the server names, such as its Metalink document or its OpenPGP signature (`Link` with
  /// the relation `describedby`, RFC 6249). They are a hint like ``duplicates``, and requested without credentials.
  public var descriptions: [Description]
  /// The bytes of the reply.
  public var body: Body

  /// The longest time that a file counts as fresh, also if its server says more: 365 days.
  public static let longestFreshness = DownloadRequest.Refresh.longestFreshness

  /// Creates a reply.
  public init(
    coverage: Coverage, length: ByteCount = .unknown, validator: Validator? = nil, contentCoding: String? = nil,
    suggestedName: String? = nil, mediaType: String? = nil, digests: [FileDigest] = [], finalURL: URL? = nil,
    redirects: [URL] = [], retryAfter: RetryAfter? = nil, freshFor: Duration? = nil, acceptsRanges: Bool? = nil,
    duplicates: [URL] = [], descriptions: [Description] = [], body: Body
  ) {
    self.coverage = coverage
    claimedRange = nil
    self.length = length
    self.validator = validator
    self.contentCoding = contentCoding
    self.suggestedName = suggestedName
    self.mediaType = mediaType
    self.digests = digests
    self.finalURL = finalURL
    self.redirects = redirects
    self.retryAfter = retryAfter
    self.freshFor = freshFor
    self.acceptsRanges = acceptsRanges
    self.duplicates = duplicates
    self.descriptions = descriptions
    self.body = body
  }
}

extension SourceReply {
  /// A resource that describes the file.
  public struct Description: Sendable, Hashable {
    /// The URL of the description.
    public var url: URL
    /// The media type that the server states for it, in lower case and without parameters, such as
    /// `application/metalink4+xml` or `application/pgp-signature`; `nil` when it states none.
    public var mediaType: String?

    /// Creates a description.
    public init(url: URL, mediaType: String? = nil) {
      self.url = url
      self.mediaType = mediaType
    }
  }
}
