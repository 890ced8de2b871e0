/// Classification of media types (RFC 9110 §8.3.1).
package enum MediaType {
  /// Whether a field value denotes a web page: HTML with any parameters.
  package static func isPage(_ field: String?) -> Bool {
    guard let field else { return false }
    let type = field.prefix { $0 != ";" }.trimmingHTTPWhitespace.lowercased()
    return type == "text/html" || type == "application/xhtml+xml"
  }
}
