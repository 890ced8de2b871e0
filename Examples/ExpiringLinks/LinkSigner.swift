import DownpipeDigest
import Foundation

/// Signs and verifies links that expire, like cloud stores and content delivery networks.
struct LinkSigner: Sendable {
  /// Where a link contains its expiry.
  enum Form: Sendable {
    /// In the parameter `Expires`, so that the client can tell without a request that the link has expired.
    case stated
    /// In an opaque token, so that the client learns it from the server's answer.
    case hidden
  }

  private let key = (0..<32).map { _ in UInt8.random(in: .min ... .max) }

  /// The path with a query that is valid until `expiry`, rounded up to whole seconds.
  func sign(_ path: String, until expiry: Date, _ form: Form) -> String {
    let second = Int(expiry.timeIntervalSince1970.rounded(.up))
    let signature = signature(of: "\(path) \(second)")
    return switch form {
    case .stated: "\(path)?Expires=\(second)&Signature=\(signature)"
    case .hidden: "\(path)?token=\(second)-\(signature)"
    }
  }

  /// The expiry of a link; `nil` when its signature is invalid.
  func expiry(of target: String) -> Date? {
    guard let parts = URLComponents(string: target) else { return nil }
    let values = Dictionary((parts.queryItems ?? []).map { ($0.name, $0.value ?? "") }) { first, _ in first }
    let token = (values["token"] ?? "").split(separator: "-").map(String.init)
    guard let text = values["Expires"] ?? token.first, let second = Int(text),
      let signature = values["Signature"] ?? token.last, !signature.isEmpty,
      constantTimeEqual(Array(signature.utf8), Array(self.signature(of: "\(parts.path) \(second)").utf8))
    else { return nil }
    return Date(timeIntervalSince1970: TimeInterval(second))
  }

  private func signature(of text: String) -> String {
    // An empty signature is never valid.
    guard let code = try? HashFunction.sha256.authenticationCode(of: Array(text.utf8), key: key) else { return "" }
    return code.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
