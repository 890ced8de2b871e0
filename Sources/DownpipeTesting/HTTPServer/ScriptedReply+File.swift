import DownpipeCore
public import Foundation

extension ScriptedReply {
  /// A file, served correctly: ranges, `If-Range`, `If-None-Match`, `HEAD`, 416 with the size.
  ///
  /// - Parameters:
  ///   - content: The bytes of the file.
  ///   - etag: The entity tag as it is sent, with its quotation marks: `"\"v1\""`, `"W/\"v1\""`.
  ///   - lastModified: The time of the last modification.
  ///   - date: The `Date` field. When `nil`, the current time is sent if `lastModified` is given, otherwise no date.
  ///   - name: The file name in `Content-Disposition`.
  ///   - mediaType: The media type.
  ///   - supportsRanges: Whether ranges are served; otherwise the whole file is.
  ///   - ignoreIfRange: Answers the range even when `If-Range` does not match, as some incorrect servers do.
  ///   - request: The request to reply to.
  public static func file(
    _ content: ScriptedContent, etag: String? = nil, lastModified: Date? = nil, date: Date? = nil,
    name: String? = nil, mediaType: String? = nil, supportsRanges: Bool = true, ignoreIfRange: Bool = false,
    for request: ScriptedRequest
  ) -> ScriptedReply {
    var headers = HeaderFields()
    if let date = date ?? lastModified.map({ _ in Date() }) { headers["Date"] = HTTPDate.string(from: date) }
    if let etag { headers["ETag"] = etag }
    if let lastModified { headers["Last-Modified"] = HTTPDate.string(from: lastModified) }
    if let name { headers["Content-Disposition"] = "attachment; filename=\"\(name)\"" }
    if supportsRanges { headers["Accept-Ranges"] = "bytes" }

    if let etag, request.headers["If-None-Match"] == etag { return ScriptedReply([.head(304, headers)]) }
    headers["Content-Type"] = mediaType

    var status = 200
    var range = 0..<content.size
    if supportsRanges, let asked = request.rangeField,
      ignoreIfRange || matchesIfRange(request, etag: etag, lastModified: lastModified)
    {
      let wanted: Range<Int64>
      switch asked {
      case .from(let start, let end): wanted = start..<max(start, min(end ?? content.size, content.size))
      case .last(let count): wanted = max(0, content.size - count)..<content.size
      }
      guard wanted.lowerBound < content.size, !wanted.isEmpty else {
        headers["Content-Range"] = "bytes */\(content.size)"
        return ScriptedReply(416, headers)
      }
      status = 206
      range = wanted
      headers["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.size)"
    }
    headers["Content-Length"] = String(range.count)
    let sendsBody = request.method != "HEAD" && !range.isEmpty
    return ScriptedReply([.head(status, headers)] + (sendsBody ? [.content(content, range)] : []))
  }

  /// Whether the range may be served (RFC 9110 §13.1.5): no `If-Range`, or one that matches strongly.
  private static func matchesIfRange(_ request: ScriptedRequest, etag: String?, lastModified: Date?) -> Bool {
    guard let condition = request.headers["If-Range"] else { return true }
    if condition.hasPrefix("W/") { return false }
    if condition.hasPrefix("\"") { return condition == etag }
    return lastModified.map { HTTPDate.string(from: $0) } == condition
  }
}
