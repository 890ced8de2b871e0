import Downpipe
import DownpipeSignature

/// Checks a file against the signature that its request names.
struct SignatureStep: UniversalPostProcessor {
  var name: String { RequestSteps.signatureStep }
  var summary: String { "as each request says" }
  var keepsContent: Bool { true }

  func process(_ artifact: Artifact, in context: ProcessingContext) async throws -> Artifact {
    guard let check = RequestSteps(context.request).signature else {
      throw DownloadError.unreadableSettings("--signature")
    }
    switch check.signature {
    case .remote(let place): return try await verify(artifact, check.key, place.file, context)
    case .bytes(let bytes):
      return try await verify(artifact, check.key, .at(context.request.url), context.fetching(bytes))
    }
  }

  private func verify(
    _ artifact: Artifact, _ key: SignatureCheck.Key, _ signature: CompanionFile, _ context: ProcessingContext
  ) async throws -> Artifact {
    switch key {
    case .openPGP(let path):
      // The path comes from the ledger: a FIFO or a device would be read without end.
      guard Folder.isRegularFile(path) else {
        throw DownloadError(.processing, "the keyring “\(path)” does not exist any more, or is not a regular file")
      }
      return try await VerifyOpenPGP(keyring: path, signature: signature).process(artifact, in: context)
    #if LIBSODIUM
      case .minisign(let text):
        return try await VerifySignature(.minisign(publicKey: text), signature: signature)
          .process(artifact, in: context)
      case .ed25519(let digits):
        guard let key = FileDigest(DigestAlgorithm("key"), hex: digits)?.bytes else {
          throw DownloadError.unreadableSettings("--pubkey")
        }
        return try await VerifySignature(.ed25519(publicKey: key), signature: signature).process(artifact, in: context)
    #else
      case .minisign, .ed25519:
        throw DownloadError(
          .processing,
          "the file was added with --pubkey, and this downpipe was built without libsodium: build it with the trait "
            + "Signature")
    #endif
    }
  }
}

extension ProcessingContext {
  /// A context whose only file to fetch is this one.
  fileprivate func fetching(_ bytes: [UInt8]) -> ProcessingContext {
    ProcessingContext(
      request: request, workspace: workspace, digests: digests, durability: durability, bytesReceived: bytesReceived,
      lastModified: lastModified,
      fetch: { _, maximum, _ in
        guard bytes.count <= maximum else {
          throw DownloadError(.tooLarge, "the signature has more than the \(maximum) bytes that one may have")
        }
        return bytes
      })
  }
}
