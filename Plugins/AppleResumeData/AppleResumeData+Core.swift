public import DownpipeCore
import Foundation

extension AppleResumeData {
  /// What a download can resume from.
  public struct Checkpoint: Hashable, Sendable {
    /// The number of valid bytes in the partial, which starts with the first byte of the file. The partial may be
    /// longer; the data does not describe the rest.
    public let bytesReceived: Int64
    /// The name of the partial file without its folder; `nil` when the data has none.
    public let fileName: String?
    /// The validator that the server sent.
    public let validator: Validator
  }

  /// Returns what a download can resume from.
  ///
  /// - Throws: `DownloadError` with the code `resumeData` when the partial might not start with the first byte of the
  ///   file: the data has a byte range, or the original request has a `Range` header.
  public func checkpoint() throws(DownloadError) -> Checkpoint {
    let first = try firstByte()
    guard first == 0 else {
      throw .resumeData(
        "the partial starts at byte \(first) of the file instead of the first: resume with URLSession, or download the "
          + "file again. If iOS 11.0 to 11.2 wrote the data and the partial does start at the first byte, call "
          + "forgetByteRange()")
    }
    return Checkpoint(bytesReceived: bytesReceived, fileName: fileName, validator: validator)
  }

  /// The server's ETag and Last-Modified; malformed values are left out.
  ///
  /// The data does not contain the time of the response, so a date alone is never a strong validator.
  public var validator: Validator {
    let lastModified: Date? =
      switch info[Key.serverDate] {
      case .string(let text): HTTPDate.date(from: text)
      case .date(let seconds) where seconds.isFinite: Date(timeIntervalSinceReferenceDate: seconds)
      default: nil
      }
    return Validator(
      entityTag: (info[Key.entityTag]?.string).flatMap(EntityTag.init(parsing:)), lastModified: lastModified)
  }

  /// Creates a request for the same file.
  ///
  /// It has the header fields of the original request, except those of ranges, connections and caches, which the source
  /// sets, and except those for the origin of the request when the URL has another one.
  /// - Throws: `DownloadError` with `.invalidRequest` when the method of the archived request is not GET.
  public func request(id: DownloadID = DownloadID()) throws(DownloadError) -> DownloadRequest {
    var headers: HeaderFields = []
    if let request = originalRequest ?? currentRequest {
      guard request.method == "GET" else {
        throw DownloadError(
          .invalidRequest,
          "the resume data is of a \(request.method.prefix(32).escaped) request; only GET is supported")
      }
      headers.fields = request.headers.fields.filter { $0.isValid && !Self.unsafe.contains($0.name.lowercased()) }
      headers = headers.reaching(Origin(url), from: Origin(request.url))
    }
    return DownloadRequest(url, id: id).with(\.headers, headers)
  }

  /// Fields that would change the meaning of the request: ranges, conditions (RFC 9110 §13), codings, and fields that
  /// frame the message or belong to the connection (RFC 9110 §7.6.1).
  private static let unsafe: Set<String> = [
    "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "host",
    "accept-encoding", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection",
    "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer", "upgrade", "http2-settings", "expect",
  ]

  /// The first byte of the file that the partial contains.
  ///
  /// It comes from the byte range or the `Range` header of the original request. The header of the current request
  /// counts only without an original request: otherwise the system has set it on resuming.
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
