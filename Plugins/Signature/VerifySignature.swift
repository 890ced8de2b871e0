#if LIBSODIUM
  public import DownpipeCore
  import DownpipePOSIX
  import Foundation

  /// A step that verifies a signature of minisign or a plain Ed25519 signature, and does not change the file.
  ///
  /// ```swift
  /// VerifySignature(.minisign(publicKey: "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"))
  /// VerifySignature(.ed25519(publicKey: key), signature: .beside(".sig"))
  /// ```
  ///
  /// The step fetches the signature, which is required. Put it before steps that change the bytes, and before all steps
  /// that read them: what reads bytes of an unknown origin may be attacked by them.
  ///
  /// **What a signature says.** The holder of the key has signed these bytes. It does not say that they are the newest
  /// version, or the file with this name: an old file has a valid signature, too. A trusted comment of minisign may say
  /// more; see ``init(_:signature:maximumBytesInMemory:trustedComment:)``.
  ///
  /// **Contract.** The step blocks, and checks for cancellation after each 256 KiB. Signatures with prehashing (`ED`, the
  /// default of minisign since 0.10) need little memory; legacy ones (`Ed`) and plain ones need the whole file in memory.
  /// It throws `DownloadError` with `.noSignature` if there is no signature; `.badSignature` for a malformed signature, one
  /// of another key, one that does not fit, and a trusted comment that is not the signed one or is not accepted;
  /// `.digestMismatch` if the signature itself is proved authentic by its trusted comment and is not of this file, so that
  /// another place may have the right one; `.invalidPipeline` for a malformed key; `.tooLarge` for a file that does not
  /// fit in memory; `.processing` for a folder; and the errors of reading and of
  /// ``/DownpipeCore/ProcessingContext/fetch(_:maximumBytes:isNamedByUser:)``.
  ///
  /// It needs libsodium, and the trait `Signature` of this package.
  public struct VerifySignature: UniversalPostProcessor {
    /// A public key, and the form of its signatures.
    public struct Key: Sendable, Hashable {
      fileprivate enum Form: Sendable, Hashable {
        case minisign(String)
        case ed25519([UInt8])
      }

      fileprivate let form: Form

      /// A key of minisign, as the text that begins with `RW` or the whole file `minisign.pub`.
      public static func minisign(publicKey: String) -> Key { Key(form: .minisign(publicKey)) }

      /// An Ed25519 key (RFC 8032) of 32 bytes, whose signature is of the file itself: 64 bytes, or their base64 or
      /// hexadecimal text.
      public static func ed25519(publicKey: [UInt8]) -> Key { Key(form: .ed25519(publicKey)) }
    }

    /// The key.
    public let key: Key
    /// The signature.
    public let signature: CompanionFile
    /// The size in bytes of the largest file that is read into memory.
    public let maximumBytesInMemory: Int
    private let acceptsComment: @Sendable (String) -> Bool

    /// Creates a step.
    ///
    /// - Parameters:
    ///   - key: The public key.
    ///   - signature: The signature; by default the file with the suffix `.minisig`.
    ///   - maximumBytesInMemory: The size of the largest file for which the whole file is read into memory; 256 MiB by
    ///     default.
    ///   - trustedComment: Whether the trusted comment of minisign is accepted, such as `timestamp:… file:…`, after it
    ///     was verified. It is called on a thread for blocking work.
    public init(
      _ key: Key, signature: CompanionFile = .beside(".minisig"), maximumBytesInMemory: Int = 256 << 20,
      trustedComment: @escaping @Sendable (String) -> Bool = { _ in true }
    ) {
      self.key = key
      self.signature = signature
      self.maximumBytesInMemory = maximumBytesInMemory
      acceptsComment = trustedComment
    }

    /// The place of the signature.
    public var summary: String { signature.description }

    /// The step checks a file and does not change it.
    public var keepsContent: Bool { true }

    /// Verifies the signature of the artifact and returns it unchanged.
    public func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
      if let error = artifact.folderError(in: name) { throw error }
      // Before anything is fetched.
      let verify: @Sendable ([UInt8]) throws -> Void
      switch key.form {
      case .minisign(let text):
        let key = try MinisignPublicKey(parsing: text)
        verify = { try verifyMinisign($0, key, artifact) }
      case .ed25519(let key):
        guard key.count == 32 else {
          throw DownloadError(.invalidPipeline, "an Ed25519 key has 32 bytes, and the public key has \(key.count)")
        }
        verify = { try verifyEd25519($0, key, artifact) }
      }
      try Task.checkCancellation()
      try await context.verify(with: signature, maximumBytes: MinisignSignature.maximumBytes) { try verify($0) }
      return artifact
    }

    private func verifyMinisign(_ bytes: [UInt8], _ key: MinisignPublicKey, _ artifact: Artifact) throws {
      let signature = try MinisignSignature(parsing: bytes)
      guard signature.keyID == key.id else {
        throw DownloadError(
          .badSignature,
          "the signature is of the key \(signature.keyID.minisignNumber), and not of \(key.id.minisignNumber)")
      }
      guard Ed25519.isValid(signature.globalSignature, of: signature.globalMessage, by: key.key) else {
        throw DownloadError(
          .badSignature, "the signature file was changed: its trusted comment or its signature is not the signed one")
      }
      let message = signature.isPrehashed ? try digest(of: artifact) : try content(of: artifact)
      guard Ed25519.isValid(signature.signature, of: message, by: key.key) else {
        throw DownloadError(
          .digestMismatch,
          "“\(artifact.name)” is not the file that was signed: it is damaged, was changed, or is another version")
      }
      guard acceptsComment(String(decoding: signature.trustedComment, as: UTF8.self)) else {
        throw DownloadError(.badSignature, "the trusted comment of the signature is not accepted")
      }
    }

    private func verifyEd25519(_ bytes: [UInt8], _ key: [UInt8], _ artifact: Artifact) throws {
      guard let signature = Self.plainSignature(bytes) else {
        throw DownloadError(
          .badSignature,
          "the signature has \(bytes.count) bytes: it must have 64, or be their base64 or hexadecimal text")
      }
      guard Ed25519.isValid(signature, of: try content(of: artifact), by: key) else {
        throw DownloadError(.badSignature, "the signature is not one of “\(artifact.name)” by the expected key")
      }
    }

    /// The 64 bytes of a plain signature; `nil` when it is malformed.
    static func plainSignature(_ bytes: [UInt8]) -> [UInt8]? {
      if bytes.count == 64 { return bytes }
      guard bytes.count <= 256, let text = String(validating: bytes, as: UTF8.self) else { return nil }
      let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
      let decoded =
        trimmed.utf8.count == 128
        ? FileDigest(DigestAlgorithm("signature"), hex: trimmed)?.bytes : Data(base64Encoded: trimmed).map(Array.init)
      return decoded?.count == 64 ? decoded : nil
    }

    private func digest(of artifact: Artifact) throws -> [UInt8] {
      var hash = BLAKE2b512()
      try ArtifactBytes(artifact).forEachBlock { block in
        try Task.checkCancellation()
        hash.update(block)
        return true
      }
      return hash.finalize()
    }

    private func content(of artifact: Artifact) throws -> [UInt8] {
      let tooLarge = DownloadError(
        .tooLarge,
        "the signature needs the whole file in memory, and the file has more than \(maximumBytesInMemory) bytes: sign it "
          + "with prehashing, as minisign does by default")
      let content = try ArtifactBytes(artifact)
      guard content.byteCount <= maximumBytesInMemory else { throw tooLarge }
      var bytes: [UInt8] = []
      bytes.reserveCapacity(Int(content.byteCount))
      try content.forEachBlock { block in
        try Task.checkCancellation()
        guard bytes.count + block.byteCount <= maximumBytesInMemory else { throw tooLarge }
        block.withUnsafeBytes { bytes.append(contentsOf: $0) }
        return true
      }
      return bytes
    }
  }
#endif
