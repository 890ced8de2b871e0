package import Foundation

extension URL {
  /// The host that limits per host apply to: in lower case, with the port if the URL has one; empty for URLs without a
  /// host.
  package var hostKey: String { URLText(self).hostKey }

  /// The resource that a validator applies to: the URL without user information, query and fragment, which may change
  /// while the resource stays the same.
  package var resourceKey: String {
    let text = URLText(self)
    return "\(text.scheme.inLowerCase)://\(text.hostKey)\(text.path)"
  }
}
