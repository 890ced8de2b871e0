package import Foundation

/// The failure of a download: what happened, in which stage, for which URL and attempt.
///
/// The engine fills in ``stage``, ``url`` and ``attempt`` when a stage leaves them out.
public struct DownloadError: Error, Sendable {
  /// The kind of a failure. The set is open, so that stages can define their own codes.
  public struct Code: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The text stored in the ledger and printed by the tool.
    public let rawValue: String
    /// Creates a code for a stage.
    public init(_ rawValue: String) { self.rawValue = rawValue }
    /// The text of the code.
    public var description: String { rawValue }

    /// The connection failed or was interrupted.
    public static let network = Code("network")
    /// No server is reachable: there is no route, or no interface is up.
    public static let offline = Code("offline")
    /// A host name could not be resolved.
    public static let hostNotFound = Code("hostNotFound")
    /// The certificate or the TLS handshake was rejected.
    public static let tls = Code("tls")
    /// A time limit was exceeded.
    public static let timedOut = Code("timedOut")
    /// The server replied with a status that carries no bytes of the file; see ``DownloadError/httpStatus``.
    public static let httpStatus = Code("httpStatus")
    /// There is no file under the URL, by a protocol without statuses.
    public static let fileNotFound = Code("fileNotFound")
    /// The host is at an address that is not of the public internet, and the source blocks such addresses.
    public static let privateAddress = Code("privateAddress")
    /// The reply violates the protocol.
    public static let invalidResponse = Code("invalidResponse")
    /// The redirects form a loop, or exceed the limit.
    public static let tooManyRedirects = Code("tooManyRedirects")
    /// The server's file differs from the one that the partial was taken from.
    public static let contentChanged = Code("contentChanged")
    /// Nothing proves that the server's file is still the one that the partial was taken from.
    public static let unproven = Code("unproven")
    /// The server's range begins at another byte than requested, or no range was requested.
    public static let wrongRange = Code("wrongRange")
    /// The end of the server's range is impossible.
    public static let wrongRangeEnd = Code("wrongRangeEnd")
    /// The server's 206 reply does not state a readable range.
    public static let unreadableRange = Code("unreadableRange")
    /// The server sent several ranges in one body.
    public static let multipartRange = Code("multipartRange")
    /// The server sent the whole file instead of the requested range.
    public static let rangeIgnored = Code("rangeIgnored")
    /// The server refuses to send a part of the file, by a status other than 416. It is asked for the whole file then.
    public static let rangeRefused = Code("rangeRefused")
    /// The server cannot serve the requested range (416).
    public static let rangeNotSatisfiable = Code("rangeNotSatisfiable")
    /// The server's file has another size than the one that the partial was taken from.
    public static let sizeChanged = Code("sizeChanged")
    /// The link has expired, and there is no fresh one.
    public static let linkExpired = Code("linkExpired")
    /// The content coding of the reply differs from that of the stored bytes.
    public static let wrongContentCoding = Code("wrongContentCoding")
    /// The file consists of coded bytes, because nothing here decodes their content coding. It is in an event only: the
    /// download finishes.
    public static let keptContentCoding = Code("keptContentCoding")
    /// The end of the file is unconfirmed: the connection ended without the sign of TLS that excludes a cut, and nothing else
    /// proves that the file is complete. It is in an event only: the download finishes.
    public static let unconfirmedEnd = Code("unconfirmedEnd")
    /// The connection ended without the sign of TLS that excludes a cut, and a second fetch has brought the same bytes. It is
    /// in an event only: the download finishes.
    public static let comparedEnd = Code("comparedEnd")
    /// The body is shorter or longer than announced.
    public static let lengthMismatch = Code("lengthMismatch")
    /// The digest of the bytes differs from the expected one.
    public static let digestMismatch = Code("digestMismatch")
    /// The digests of some pieces of the file differ from the expected ones; see ``DownloadError/wrongBytes``.
    ///
    /// A step throws it only for its input. Only these bytes are then fetched again, from another place if there is one.
    public static let pieceMismatch = Code("pieceMismatch")
    /// The bytes are not complete or correct data of their format: decoding them has proved that they are wrong.
    ///
    /// A step throws it only for its input, and not for a failure of its own. The bytes are then downloaded again.
    public static let damaged = Code("damaged")
    /// The storage is full.
    public static let noSpace = Code("noSpace")
    /// The process or the system has reached its limit of open files and connections.
    public static let tooManyOpenFiles = Code("tooManyOpenFiles")
    /// The download or its partial is in use: by a running transfer, by another downloader, or by another process.
    public static let inUse = Code("inUse")
    /// The storage denies access, or its path is of the wrong kind.
    public static let permission = Code("permission")
    /// The storage failed for another reason.
    public static let storage = Code("storage")
    /// The destination exists and must not be replaced.
    public static let alreadyExists = Code("alreadyExists")
    /// A path would leave the folder that it must stay in.
    public static let unsafePath = Code("unsafePath")
    /// The body has more bytes than allowed.
    public static let tooLarge = Code("tooLarge")
    /// No source of the pipeline accepts the URL.
    public static let unsupportedURL = Code("unsupportedURL")
    /// The request is malformed.
    public static let invalidRequest = Code("invalidRequest")
    /// The pipeline is not valid.
    public static let invalidPipeline = Code("invalidPipeline")
    /// A post-processing step failed.
    public static let processing = Code("processing")
    /// The ledger failed.
    public static let ledger = Code("ledger")
    /// The download was cancelled.
    public static let cancelled = Code("cancelled")
    /// The download was removed.
    public static let removed = Code("removed")
    /// The downloader was shut down.
    public static let shutDown = Code("shutDown")
    /// Another owner has taken over the download.
    public static let notOwner = Code("notOwner")
  }

  /// Whose fault a failure is.
  public enum Scope: String, Sendable, Hashable, Codable {
    /// That of this download: its request, its server, its bytes.
    case download
    /// That of the way to the host, such as a proxy or a name server. When three different hosts fail so in a row, the fault
    /// is the machine's.
    case host
    /// That of this machine, with every download: no space, no credentials of its own, a folder that cannot be written.
    /// Another machine may do it. The download keeps its attempts, and the downloader pauses; see ``RetryDecision/giveBack``.
    case machine
  }

  /// The properties are behind one pointer. Every function that can throw has room for several errors, and the frames of
  /// asynchronous functions are on the heap as long as a transfer waits for its server: with the properties in place,
  /// errors were half of the memory of a waiting download. What makes errors is not inlined for the same reason.
  private indirect enum Box: Sendable {
    case holding(Properties)
  }

  private var box: Box

  private var properties: Properties {
    get {
      switch box {
      case .holding(let properties): properties
      }
    }
    set { box = .holding(newValue) }
  }

  /// The kind of failure.
  public var code: Code {
    get { properties.code }
    set { properties.code = newValue }
  }
  /// What happened and what to do about it, in a sentence without secrets.
  public var message: String {
    get { properties.message }
    set { properties.message = newValue }
  }
  /// The name of the stage that failed; `nil` when it is unknown.
  public var stage: String? {
    get { properties.stage }
    set { properties.stage = newValue }
  }
  /// The URL, with its secrets hidden; `nil` when the failure has none.
  public var url: String? {
    get { properties.url }
    set { properties.url = newValue }
  }
  /// The attempt that failed, from 1; `nil` when the failure is not part of an attempt.
  public var attempt: Int? {
    get { properties.attempt }
    set { properties.attempt = newValue }
  }
  /// The HTTP status of the reply; `nil` when there was none.
  public var httpStatus: Int? {
    get { properties.httpStatus }
    set { properties.httpStatus = newValue }
  }
  /// The delay that the server asks for before the next request; `nil` when it asks for none.
  public var retryAfter: RetryAfter? {
    get { properties.retryAfter }
    set { properties.retryAfter = newValue }
  }
  /// The bytes of the file that were proved wrong, with the code `.pieceMismatch`; `nil` otherwise. The ledger does not
  /// keep them.
  public var wrongBytes: ByteRangeSet? {
    get { properties.wrongBytes }
    set { properties.wrongBytes = newValue }
  }
  /// Whose fault it is; `.download` unless a stage knows better.
  public var scope: Scope {
    get { properties.scope ?? .download }
    set { properties.scope = newValue == .download ? nil : newValue }
  }
  /// The underlying error. The ledger does not keep it.
  public var cause: (any Error)? {
    get { properties.cause }
    set { properties.cause = newValue }
  }

  /// Creates a description of a failure.
  ///
  /// URLs in the message lose user information, fragment and the values of the query: messages are shown, logged and kept.
  @inline(never)
  public init(
    _ code: Code,
    _ message: String,
    stage: String? = nil,
    httpStatus: Int? = nil,
    retryAfter: RetryAfter? = nil,
    scope: Scope = .download,
    cause: (any Error)? = nil
  ) {
    box = .holding(
      Properties(
        code: code, message: message.redactingURLs, stage: stage, httpStatus: httpStatus, retryAfter: retryAfter,
        scope: scope == .download ? nil : scope, cause: cause))
  }

  /// Converts any error: a download error stays as it is, any other error is wrapped with `code`.
  @inline(never)
  public init(_ error: any Error, as code: Code, stage: String? = nil) {
    if var known = error as? DownloadError {
      known.stage = known.stage ?? stage
      self = known
    } else if error is CancellationError {
      self.init(.cancelled, "the work was cancelled", stage: stage, cause: error)
    } else {
      self.init(code, String(describing: error), stage: stage, cause: error)
    }
  }

  /// Returns the error with the facts that only the engine knows, unless they are already set.
  @inline(never)
  package func located(stage: String?, url: URL?, attempt: Int?) -> DownloadError {
    var located = properties
    located.stage = located.stage ?? stage
    located.url = located.url ?? url?.redacted
    located.attempt = located.attempt ?? attempt
    var copy = self
    copy.properties = located
    return copy
  }
}

extension DownloadError: Hashable {
  /// Compares all properties except the cause and the wrong bytes.
  public static func == (left: Self, right: Self) -> Bool {
    left.code == right.code && left.message == right.message && left.stage == right.stage && left.url == right.url
      && left.attempt == right.attempt && left.httpStatus == right.httpStatus && left.retryAfter == right.retryAfter
      && left.scope == right.scope
  }

  /// Hashes a part of what ``==(_:_:)`` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(code)
    hasher.combine(message)
    hasher.combine(httpStatus)
  }
}

extension DownloadError: CustomStringConvertible {
  /// The code, stage, message and URL on one line.
  public var description: String {
    var text = code.rawValue
    if let httpStatus { text += " \(httpStatus)" }
    if let stage { text += " in \(stage)" }
    text += ": \(message)"
    if let url { text += " [\(url)]" }
    return text
  }
}

extension DownloadError: Codable {
  /// The properties, and how the ledger stores them.
  private struct Properties: Sendable, Codable {
    var code: Code
    var message: String
    var stage: String?
    var url: String?
    var attempt: Int?
    var httpStatus: Int?
    var retryAfter: RetryAfter?
    var scope: Scope?
    var cause: (any Error)?
    var wrongBytes: ByteRangeSet?

    enum CodingKeys: String, CodingKey {
      case code, message, stage, url, attempt, httpStatus, retryAfter, scope
    }
  }

  /// Reads an error, which has no ``cause`` and no ``wrongBytes``.
  public init(from decoder: any Decoder) throws {
    box = .holding(try Properties(from: decoder))
  }

  /// Writes all properties except the cause and the wrong bytes.
  public func encode(to encoder: any Encoder) throws {
    try properties.encode(to: encoder)
  }
}
