public import DownpipeCore
import Foundation

extension AppleResumeData {
  /// What a download can go on from.
  public struct Checkpoint: Hashable, Sendable {
    /// How many bytes the partial holds, from the file's first one on. The partial may be longer: what is beyond
    /// them is not accounted for.
    public let bytesReceived: Int64
    /// The partial's name, if the data gives one; which folder it is in is for the caller to know.
    public let fileName: String?
    /// What the server said about the bytes.
    public let validator: Validator
  }

  /// The facts to go on from.
  ///
  /// - Throws: ``DownloadError`` with the code `resumeData` when the partial does not begin with the file's first
  ///   byte, or may not: the data has a byte range, or the request that the task was made with has a `Range` header.
  public func checkpoint() throws(DownloadError) -> Checkpoint {
    let first = try firstByte()
    guard first == 0 else {
      throw .resumeData(
        "the partial begins at byte \(first) of the file, not at the first: go on with URLSession, or download the "
          + "file anew. If iOS 11.0 to 11.2 wrote this and the partial does begin at the first byte, forget the byte "
          + "range")
    }
    return Checkpoint(bytesReceived: bytesReceived, fileName: fileName, validator: validator)
  }

  /// The server's ETag and Last-Modified; what is malformed is left out.
  ///
  /// The data has no time of the answer, so that a date alone never is a strong validator.
  public var validator: Validator {
    let lastModified: Date? =
      switch info[Key.serverDate] {
      case .string(let text): HTTPDate.date(from: text)
      case .date(let seconds) where seconds.isFinite: Date(timeIntervalSinceReferenceDate: seconds)
      default: nil
      }
    return Validator(
      entityTag: (info[Key.entityTag]?.string).flatMap(EntityTag.init(field:)), lastModified: lastModified)
  }

  /// A request for the same file.
  ///
  /// It has the header fields of the request that the task was made with, but for those that belong to the range,
  /// the connection or the cache, which the source decides, and for credentials of another host.
  /// - Throws: ``DownloadError`` with `.invalidRequest` when the archived request is no GET.
  public func request(id: DownloadID = DownloadID()) throws(DownloadError) -> DownloadRequest {
    var headers: HeaderFields = []
    if let request = originalRequest ?? currentRequest {
      guard request.method == "GET" else {
        throw DownloadError(
          .invalidRequest,
          "the resume data is of a \(request.method.prefix(32).escaped) request; only GET can be downloaded")
      }
      headers.fields = request.headers.fields.filter { $0.isValid && !Self.unsafe.contains($0.name.lowercased()) }
      if !request.url.isSameOrigin(as: url) { headers.removeCredentials() }
    }
    return DownloadRequest(url, id: id, headers: headers)
  }

  /// Fields that make another request of it: ranges, conditions (RFC 9110 §13), codings, and what frames the message
  /// or belongs to the connection (RFC 9110 §7.6.1).
  private static let unsafe: Set<String> = [
    "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "host",
    "accept-encoding", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection",
    "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer", "upgrade", "http2-settings", "expect",
  ]

  /// Which byte of the server's file the partial begins with.
  ///
  /// The byte range says it, or else the `Range` that the app asked for. That of the current request counts only when
  /// there is no original one: otherwise the system put it there on resuming.
  func firstByte() throws(DownloadError) -> Int64 {
    guard let range = byteRange ?? (originalRequest ?? currentRequest)?.headers["Range"] else { return 0 }
    var text = range[...]
    if text.prefix(6).caseInsensitivelyEquals("bytes=") { text = text.dropFirst(6) }
    let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Int64(decimalDigits: ends[0]),
      ends[1].isEmpty || Int64(decimalDigits: ends[1]).map({ $0 >= first }) == true
    else { throw Self.unexpected(Key.byteRange, .string(range)) }
    return first
  }
}
