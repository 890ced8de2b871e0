/// Classification of media types (RFC 9110 §8.3.1).
package enum MediaType {
  /// Whether a field value denotes a web page: HTML with any parameters.
  package static func isPage(_ field: String?) -> Bool {
    guard let field else { return false }
    return ["text/html", "application/xhtml+xml"].contains(withoutParameters(field))
  }

  /// The type of a field value in lower case, without its parameters.
  package static func withoutParameters(_ field: String) -> String {
    field.prefix { $0 != ";" }.trimmingHTTPWhitespace.lowercased()
  }
}
