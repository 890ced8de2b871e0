public import DownpipeCore
public import Foundation

/// A source for `data:` URLs (RFC 2397), which contain the bytes of their file.
///
/// ```swift
/// try await downloader.add("data:text/plain;base64,SGVsbG8=")
/// ```
/// The media type is that of the URL, `text/plain;charset=US-ASCII` if it has none. White space in Base64 and missing
/// padding are accepted, as browsers do. The fragment of the URL is not part of the file. The size is limited by that of
/// a URL, ``/DownpipeCore/DownloadRequest/maximumURLBytes``.
public struct DataURLSource: Source, SourceSession {
  /// Creates the source, which has no settings.
  public init() {}

  /// Whether the URL's scheme is `data`.
  public func accepts(_ url: URL) -> Bool { url.scheme?.lowercased() == "data" }

  /// Decodes the URL.
  ///
  /// - Throws: `DownloadError` with `.unsupportedURL` for a URL without a comma, with damaged Base64 or damaged escapes;
  ///   `.invalidRequest` for an empty range.
  public func open(_ request: SourceRequest) async throws -> SourceReply {
    let content = try DataURL(request.url)
    let bytes = content.bytes
    let size = Int64(bytes.count)
    // The same URL always has the same bytes.
    var reply = SourceReply(
      coverage: .whole, length: .known(size), validator: Validator(entityTag: EntityTag("data")),
      suggestedName: "data", mediaType: content.mediaType, finalURL: nil, acceptsRanges: true, body: .empty)
    if request.range == nil, request.condition?.isUnmodified(in: reply.validator) == true {
      (reply.coverage, reply.length) = (.none(.notModified), .unknown)
      return reply
    }
    guard let range = try reply.serve(request.range, of: size) else { return reply }
    let (part, pace) = (Int(range.lowerBound)..<Int(range.upperBound), request.pace)
    reply.body = Body { sink in
      var position = part.lowerBound
      while position < part.upperBound {
        try Task.checkCancellation()
        let end = min(position + Self.chunkSize, part.upperBound)
        try sink(bytes.span.bytes.extracting(position..<end))
        try await pace.keep(after: end - position)
        position = end
      }
    }
    return reply
  }

  /// The number of bytes in a chunk.
  private static let chunkSize = 64 << 10
}

/// The parts of a `data:` URL.
private struct DataURL {
  let mediaType: String
  let bytes: [UInt8]

  init(_ url: URL) throws(DownloadError) {
    let text = url.absoluteString.utf8
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")), let comma = text.firstIndex(of: UInt8(ascii: ",")),
      colon < comma
    else { throw DownloadError(.unsupportedURL, "the data URL has no comma: write it as data:,text") }
    let head = String(decoding: text[text.index(after: colon)..<comma], as: UTF8.self)
    let data = text[text.index(after: comma)...].prefix { $0 != UInt8(ascii: "#") }
    guard let decoded = PercentEncoding.decode(Array(data)) else {
      throw DownloadError(.unsupportedURL, "a percent sign of the data URL is not followed by two hexadecimal digits")
    }
    var type = head.split(separator: ";", omittingEmptySubsequences: false).map(String.init)
    if type.count > 1, type[type.count - 1].trimmingHTTPWhitespace.lowercased() == "base64" {
      type.removeLast()
      bytes = try Self.base64(decoded)
    } else {
      bytes = decoded
    }
    let joined = type.joined(separator: ";")
    mediaType =
      joined.isEmpty ? "text/plain;charset=US-ASCII" : joined.hasPrefix(";") ? "text/plain" + joined : joined
  }

  private static func base64(_ text: [UInt8]) throws(DownloadError) -> [UInt8] {
    var digits = text.filter { ![0x09, 0x0A, 0x0C, 0x0D, 0x20].contains($0) }
    if digits.count % 4 != 1 { digits += [UInt8](repeating: UInt8(ascii: "="), count: (4 - digits.count % 4) % 4) }
    guard let data = Data(base64Encoded: Data(digits)) else {
      throw DownloadError(.unsupportedURL, "the data URL does not have correct Base64 (RFC 4648 §4)")
    }
    return [UInt8](data)
  }
}
