import Crypto
import Foundation

/// Signs links that die, and checks them, as cloud stores and content delivery networks do.
struct LinkSigner: Sendable {
  /// Where a link keeps its time.
  enum Form: Sendable {
    /// In `Expires`, for everybody to read: a client need not ask to know that the link is dead.
    case stated
    /// In a token of the server's own: a client finds out by the answer.
    case hidden
  }

  private let key = SymmetricKey(size: .bits256)

  /// The path with a query that lets its bearer in until `expiry`, in whole seconds, rounded up.
  func sign(_ path: String, until expiry: Date, _ form: Form) -> String {
    let second = Int(expiry.timeIntervalSince1970.rounded(.up))
    let signature = signature(of: "\(path) \(second)")
    return switch form {
    case .stated: "\(path)?Expires=\(second)&Signature=\(signature)"
    case .hidden: "\(path)?token=\(second)-\(signature)"
    }
  }

  /// When a link dies; `nil` when it is none of ours.
  func expiry(of target: String) -> Date? {
    guard let parts = URLComponents(string: target) else { return nil }
    let values = Dictionary((parts.queryItems ?? []).map { ($0.name, $0.value ?? "") }) { first, _ in first }
    let token = (values["token"] ?? "").split(separator: "-").map(String.init)
    guard let text = values["Expires"] ?? token.first, let second = Int(text),
      values["Signature"] ?? token.last == signature(of: "\(parts.path) \(second)")
    else { return nil }
    return Date(timeIntervalSince1970: TimeInterval(second))
  }

  private func signature(of text: String) -> String {
    let code = HMAC<SHA256>.authenticationCode(for: Data(text.utf8), using: key)
    return code.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
