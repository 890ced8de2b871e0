public import DownpipeCore
import DownpipeDigest
import DownpipePOSIX
import Foundation

/// The token that clients have to send.
public struct RPCSecret: Sendable {
  private let digest: [UInt8]

  /// Creates a token from a text that clients send as `token:TEXT`.
  /// - Throws: ``/DownpipeCore/DownloadError`` with `.invalidRequest` for an empty text.
  public init(_ text: String) throws(DownloadError) {
    guard !text.isEmpty else { throw DownloadError(.invalidRequest, "the token of the RPC server is empty") }
    digest = Self.digest(text)
  }

  /// Makes a token of 128 random bits, in hexadecimal digits.
  public static func generate() -> String {
    var generator = SystemRandomNumberGenerator()
    return (0..<2).map { _ in
      let digits = String(generator.next() as UInt64, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
  }

  private static func digest(_ text: String) -> [UInt8] { sha256(Array(text.utf8)) }

  /// Compares a token in a time that does not depend on where it differs.
  func matches(_ text: some StringProtocol) -> Bool { constantTimeEqual(digest, Self.digest(String(text))) }
}
