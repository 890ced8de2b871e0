package import Foundation

/// What went wrong with a download, where, and what may be done about it.
///
/// The core fills in ``stage``, ``url`` and ``attempt`` when a stage leaves them out.
public struct DownloadError: Error, Sendable {
  /// What kind of failure it is: an open set, so that stages can bring codes of their own.
  public struct Code: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The word stored in the ledger and printed by the tool.
    public let rawValue: String
    /// Makes a code of one's own.
    public init(_ rawValue: String) { self.rawValue = rawValue }
    /// The word.
    public var description: String { rawValue }

    /// The connection could not be made, or broke.
    public static let network = Code("network")
    /// There is no way to any server: no route, or no interface that is up.
    public static let offline = Code("offline")
    /// A host name could not be resolved.
    public static let hostNotFound = Code("hostNotFound")
    /// The certificate or the TLS handshake was refused.
    public static let tls = Code("tls")
    /// A time limit ran out.
    public static let timedOut = Code("timedOut")
    /// The server answered with a status that brings no bytes; see ``DownloadError/httpStatus``.
    public static let httpStatus = Code("httpStatus")
    /// The answer breaks the protocol.
    public static let invalidResponse = Code("invalidResponse")
    /// A redirect loop, or more redirects than allowed.
    public static let tooManyRedirects = Code("tooManyRedirects")
    /// The file is another one than the one the partial was taken from.
    public static let contentChanged = Code("contentChanged")
    /// Nothing proves that the file on the server is still the one on disk.
    public static let unproven = Code("unproven")
    /// The server's range begins at another byte than the one it was asked for, or nobody asked for a range.
    public static let wrongRange = Code("wrongRange")
    /// The server's range ends where it cannot.
    public static let wrongRangeEnd = Code("wrongRangeEnd")
    /// The server's 206 does not say which range it holds.
    public static let unreadableRange = Code("unreadableRange")
    /// The server sent several ranges in one body.
    public static let multipartRange = Code("multipartRange")
    /// The server sent the whole file instead of the range it was asked for.
    public static let rangeIgnored = Code("rangeIgnored")
    /// The server has nothing at the range it was asked for (416).
    public static let rangeNotSatisfiable = Code("rangeNotSatisfiable")
    /// The server's file has another size than the one on disk is of.
    public static let sizeChanged = Code("sizeChanged")
    /// The link has expired, and there is no fresh one.
    public static let linkExpired = Code("linkExpired")
    /// The answer's content coding differs from that of the bytes on disk.
    public static let wrongContentCoding = Code("wrongContentCoding")
    /// The body is shorter or longer than announced.
    public static let lengthMismatch = Code("lengthMismatch")
    /// The bytes do not have the digest they should.
    public static let digestMismatch = Code("digestMismatch")
    /// The storage is full.
    public static let noSpace = Code("noSpace")
    /// The process, or the system, has as many files and connections open as it may.
    public static let tooManyOpenFiles = Code("tooManyOpenFiles")
    /// Another process, or another downloader in this one, is writing the same partial.
    public static let inUse = Code("inUse")
    /// The storage may not be written, or its path is of the wrong kind.
    public static let permission = Code("permission")
    /// The storage failed in another way.
    public static let storage = Code("storage")
    /// The destination is taken, and the conflict policy says to fail.
    public static let alreadyExists = Code("alreadyExists")
    /// A path would leave the folder it is meant for.
    public static let unsafePath = Code("unsafePath")
    /// More bytes than allowed.
    public static let tooLarge = Code("tooLarge")
    /// No source of the pipeline takes this URL.
    public static let unsupportedURL = Code("unsupportedURL")
    /// The request itself is malformed.
    public static let invalidRequest = Code("invalidRequest")
    /// The pipeline is put together wrongly.
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
    /// Another owner has taken the download over.
    public static let notOwner = Code("notOwner")
  }

  /// What kind of failure it is.
  public var code: Code
  /// What happened and what to do about it, in a sentence; without secrets.
  public var message: String
  /// The stage that failed.
  public var stage: String?
  /// The URL, with its secrets hidden.
  public var url: String?
  /// The attempt during which it failed, counted from 1.
  public var attempt: Int?
  /// The status the server answered with.
  public var httpStatus: Int?
  /// How long the server asked to be left alone.
  public var retryAfter: RetryAfter?
  /// The error behind this one. Not kept over restarts.
  public var cause: (any Error)?

  /// Describes a failure.
  public init(
    _ code: Code,
    _ message: String,
    stage: String? = nil,
    httpStatus: Int? = nil,
    retryAfter: RetryAfter? = nil,
    cause: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.stage = stage
    self.httpStatus = httpStatus
    self.retryAfter = retryAfter
    self.cause = cause
  }

  /// Any error as a download error: itself if it is one, otherwise wrapped with `code`.
  public init(_ error: any Error, as code: Code, stage: String? = nil) {
    if var known = error as? DownloadError {
      known.stage = known.stage ?? stage
      self = known
    } else if error is CancellationError {
      self.init(.cancelled, "the work was cancelled", stage: stage, cause: error)
    } else {
      // Foundation's errors name the URL they are about, with its password.
      self.init(code, String(describing: error).redactingURLs, stage: stage, cause: error)
    }
  }

  /// The same error with the facts that only the engine knows, where they are missing.
  package func located(stage: String?, url: URL?, attempt: Int?) -> DownloadError {
    var copy = self
    copy.stage = copy.stage ?? stage
    copy.url = copy.url ?? url?.redacted
    copy.attempt = copy.attempt ?? attempt
    return copy
  }
}

extension DownloadError: Hashable {
  /// Compares everything but the cause.
  public static func == (left: Self, right: Self) -> Bool {
    left.code == right.code && left.message == right.message && left.stage == right.stage && left.url == right.url
      && left.attempt == right.attempt && left.httpStatus == right.httpStatus && left.retryAfter == right.retryAfter
  }

  /// Hashes what ``==(_:_:)`` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(code)
    hasher.combine(message)
    hasher.combine(httpStatus)
  }
}

extension DownloadError: CustomStringConvertible {
  /// One line: code, stage, message, URL.
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
  enum CodingKeys: String, CodingKey {
    case code, message, stage, url, attempt, httpStatus, retryAfter
  }
}
