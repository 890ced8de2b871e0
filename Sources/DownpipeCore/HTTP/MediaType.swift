/// Classification of media types (RFC 9110 §8.3.1).
package enum MediaType {
  /// What a media type says of a file, as far as it tells a file from a message that a server sends in its place.
  package enum Kind: Sendable, Hashable {
    /// No media type, or one that servers send for anything.
    case unknown
    /// HTML.
    case page
    /// Plain text and other types of text.
    case text
    /// JSON, and types that are written in it.
    case json
    /// XML, and types that are written in it.
    case xml
    /// Any other type.
    case content

    private static let anything: Set<String> = [
      "", "*/*", "application/octet-stream", "binary/octet-stream", "application/binary", "application/unknown",
      "application/x-download", "application/download", "application/force-download", "application/x-unknown",
      "unknown/unknown",
    ]

    /// The kind of the media type in a field; `nil` is no type.
    package init(_ field: String?) {
      let type = field.map(MediaType.withoutParameters) ?? ""
      switch type {
      case _ where Self.anything.contains(type): self = .unknown
      case "text/html", "application/xhtml+xml": self = .page
      case "application/json", "text/json", "application/x-json": self = .json
      case "application/xml", "text/xml": self = .xml
      case _ where type.hasSuffix("+json"): self = .json
      case _ where type.hasSuffix("+xml"): self = .xml
      case _ where type.hasPrefix("text/"): self = .text
      default: self = .content
      }
    }
  }

  /// Whether a field value denotes a web page: HTML with any parameters.
  package static func isPage(_ field: String?) -> Bool { Kind(field) == .page }

  /// The type of a field value in lower case, without its parameters.
  package static func withoutParameters(_ field: String) -> String {
    field.prefix { $0 != ";" }.trimmingHTTPWhitespace.lowercased()
  }
}
