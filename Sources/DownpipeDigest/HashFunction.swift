/// A cryptographic hash function of libcrypto, or of CryptoKit on Apple's platforms.
package enum HashFunction: Int, Sendable, CaseIterable {
  /// SHA-2 (FIPS 180-4).
  case sha256, sha384, sha512
  /// SHA-1 and MD5 detect accidental changes, but are broken against attackers.
  case sha1, md5

  /// Whether digests can be computed: libcrypto may refuse a function, such as MD5 with a FIPS provider.
  package var isAvailable: Bool { (try? StreamingDigest(self)) != nil }

  /// Computes the digest of bytes in memory.
  ///
  /// - Throws: ``DigestError`` if libcrypto does not provide the function.
  package func digest(of bytes: [UInt8]) throws(DigestError) -> [UInt8] {
    var digest = try StreamingDigest(self)
    bytes.withUnsafeBytes { digest.update($0) }
    return digest.finalize()
  }

  /// Computes the HMAC of a message in memory (RFC 2104).
  ///
  /// - Throws: ``DigestError`` if libcrypto does not provide the function, or refuses the key, as a FIPS provider may do with
  ///   a short one.
  package func authenticationCode(of message: [UInt8], key: [UInt8]) throws(DigestError) -> [UInt8] {
    try HashState.authenticationCode(self, of: message, key: key)
  }
}

/// A hash function, or a key, that libcrypto refuses.
package struct DigestError: Error, Hashable, CustomStringConvertible {
  /// The function.
  package let function: HashFunction
  /// The version of libcrypto, and its reason.
  package let reason: String

  /// One line for a log or a message.
  package var description: String { "\(function) cannot be computed: \(reason)" }
}

/// Computes SHA-256 of bytes in memory, for names and comparisons.
///
/// A FIPS provider has SHA-256, too. If a broken configuration of libcrypto leaves it out, the process ends with a message;
/// TLS would not work either.
package func sha256(_ bytes: [UInt8]) -> [UInt8] {
  do { return try HashFunction.sha256.digest(of: bytes) } catch { fatalError("\(error)") }
}
