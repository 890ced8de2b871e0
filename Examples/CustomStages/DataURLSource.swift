import Downpipe
import Foundation

/// A custom source for `data:` URLs (RFC 2397), which contain their bytes.
struct DataURLSource: Source, SourceSession {
  func accepts(_ url: URL) -> Bool { url.scheme?.lowercased() == "data" }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    try Task.checkCancellation()
    let text = request.url.absoluteString.dropFirst("data:".count)
    guard let comma = text.firstIndex(of: ",") else {
      throw DownloadError(.invalidRequest, "a data: URL needs a comma before its bytes")
    }
    let head = text[..<comma].split(separator: ";")
    let payload = String(text[text.index(after: comma)...])
    guard let bytes = head.last == "base64" ? Data(base64Encoded: payload).map(Array.init) : Self.unescape(payload)
    else {
      throw DownloadError(.invalidRequest, "the bytes of this data: URL cannot be decoded")
    }
    let start = min(request.range?.start ?? 0, Int64(bytes.count))
    let end = min(request.range?.end ?? Int64(bytes.count), Int64(bytes.count))
    guard request.range == nil || start < end else {
      return SourceReply(coverage: .none(.rangeNotSatisfiable(total: .known(Int64(bytes.count)))), body: .empty)
    }
    return SourceReply(
      coverage: request.range == nil ? .whole : .range(start..<end, total: .known(Int64(bytes.count))),
      length: .known(end - start), validator: Validator(entityTag: EntityTag(String(bytes.count))),
      mediaType: head.first.map(String.init), body: .bytes(Array(bytes[Int(start)..<Int(end)])))
  }

  private static func unescape(_ text: String) -> [UInt8]? { text.removingPercentEncoding.map { Array($0.utf8) } }
}
