/// Computes the digest of bytes that arrive in chunks.
///
/// It is a value: a copy continues independently, and shares its state until one of them changes. Copies can be used on
/// several threads. Memory is constant, and `update` neither blocks nor fails: a provider that stops working after it has
/// started a digest, or that is out of memory, ends the process, because a wrong digest must not be returned.
package struct StreamingDigest: Sendable {
  private var state: HashState

  /// Starts a digest of no bytes.
  ///
  /// - Throws: ``DigestError`` if libcrypto does not provide the function. CryptoKit provides all.
  package init(_ function: HashFunction) throws(DigestError) { state = try HashState(function) }

  /// Takes the next bytes.
  package mutating func update(_ bytes: RawSpan) { bytes.withUnsafeBytes { state.update($0) } }

  /// Takes the next bytes.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) { state.update(bytes) }

  /// Returns the digest of all bytes so far. More bytes can follow.
  package func finalize() -> [UInt8] { state.finalize() }
}
