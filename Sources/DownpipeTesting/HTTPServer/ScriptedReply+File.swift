import DownpipeCore
public import Foundation

extension ScriptedReply {
  /// A file, served correctly: ranges, `If-Range`, `If-None-Match`, `If-Modified-Since`, `HEAD`, 416 with the size.
  ///
  /// - Parameters:
  ///   - content: The bytes of the file.
  ///   - etag: The entity tag as it is sent, with its quotation marks: `"\"v1\""`, `"W/\"v1\""`.
  ///   - lastModified: The time of the last modification.
  ///   - date: The `Date` field. When `nil`, the current time is sent if `lastModified` is given, otherwise no date.
  ///   - name: The file name in `Content-Disposition`.
  ///   - mediaType: The media type.
  ///   - supportsRanges: Whether ranges are served; otherwise the whole file is.
  ///   - cacheControl: The field `Cache-Control`, also of a 304.
  ///   - ignoreIfRange: Answers the range even when `If-Range` does not match, as some incorrect servers do.
  ///   - request: The request to reply to.
  public static func file(
    _ content: ScriptedContent, etag: String? = nil, lastModified: Date? = nil, date: Date? = nil,
    name: String? = nil, mediaType: String? = nil, supportsRanges: Bool = true, cacheControl: String? = nil,
    ignoreIfRange: Bool = false,
    for request: ScriptedRequest
  ) -> ScriptedReply {
    var headers = HeaderFields()
    if let date = date ?? lastModified.map({ _ in Date() }) { headers["Date"] = HTTPDate.string(from: date) }
    if let etag { headers["ETag"] = etag }
    if let lastModified { headers["Last-Modified"] = HTTPDate.string(from: lastModified) }
    if let name { headers["Content-Disposition"] = "attachment; filename=\"\(name)\"" }
    if supportsRanges { headers["Accept-Ranges"] = "bytes" }
    headers["Cache-Control"] = cacheControl

    if isUnmodified(for: request, etag: etag, lastModified: lastModified) {
      return ScriptedReply([.head(304, headers)])
    }
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

  /// Whether the client has the file (RFC 9110 §13.2.2): the tag it asks with is the one of the file, compared weakly, or
  /// without a tag the file is not newer than its date.
  private static func isUnmodified(for request: ScriptedRequest, etag: String?, lastModified: Date?) -> Bool {
    if let condition = request.headers["If-None-Match"] {
      func opaque(_ tag: String) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...] }
      return etag.map { opaque($0) == opaque(condition) } ?? false
    }
    guard let lastModified, let since = request.headers["If-Modified-Since"].flatMap(HTTPDate.date(from:)) else {
      return false
    }
    return lastModified.timeIntervalSince1970.rounded(.down) <= since.timeIntervalSince1970
  }

  /// Whether the range may be served (RFC 9110 §13.1.5): no `If-Range`, or one that matches strongly.
  private static func matchesIfRange(_ request: ScriptedRequest, etag: String?, lastModified: Date?) -> Bool {
    guard let condition = request.headers["If-Range"] else { return true }
    if condition.hasPrefix("W/") { return false }
    if condition.hasPrefix("\"") { return condition == etag }
    return lastModified.map { HTTPDate.string(from: $0) } == condition
  }
}
