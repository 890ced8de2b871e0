import DownpipeCore
import Foundation

/// The text form of OpenPGP data (RFC 9580 §6).
enum OpenPGPArmor {
  private static let begin = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
  private static let end = "-----END PGP PUBLIC KEY BLOCK-----"

  /// Returns the binary form of a keyring in text form: of all its blocks, one after the other; `nil` for a keyring that
  /// is binary already.
  ///
  /// The checksum is not checked: RFC 9580 makes it optional, and gpgv reads the packets strictly.
  /// - Throws: ``DownloadError`` with `.invalidPipeline` for damaged text.
  static func keys(in bytes: [UInt8]) throws(DownloadError) -> [UInt8]? {
    // The first byte of a packet has its highest bit set, and a keybox begins with its length.
    guard let text = String(validating: bytes, as: UTF8.self), text.contains(begin) else { return nil }
    var keys: [UInt8] = []
    var body: String?
    var isHead = false
    for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
      let line = line.trimmingCharacters(in: .whitespaces)
      if line == begin, body == nil {
        (body, isHead) = ("", true)
      } else if let base64 = body {
        if line == end {
          guard let data = Data(base64Encoded: base64), !data.isEmpty else { throw damaged }
          keys += data
          body = nil
        } else if isHead {
          isHead = !line.isEmpty
        } else if !line.hasPrefix("=") {
          body = base64 + line
        }
      }
    }
    guard body == nil, !keys.isEmpty else { throw damaged }
    return keys
  }

  private static var damaged: DownloadError {
    DownloadError(.invalidPipeline, "the keyring is a damaged OpenPGP text: export the keys again with gpg --export")
  }
}
