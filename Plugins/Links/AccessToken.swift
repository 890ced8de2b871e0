/// An access token of OAuth 2.0 (RFC 6749 §1.4). It is a secret, which its descriptions do not contain.
public struct AccessToken: Sendable, Hashable {
  /// The token, as it is sent after `Bearer` (RFC 6750 §2.1).
  public let text: String

  /// Creates a token from its text.
  public init(_ text: String) { self.text = text }
}

extension AccessToken: CustomStringConvertible, CustomReflectable {
  /// A placeholder, suitable for logs.
  public var description: String { "…" }
  /// A mirror without the token.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
