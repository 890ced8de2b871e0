import Downpipe
import DownpipeSignature
import Foundation

/// The signature that a file is checked against, and the key.
struct SignatureCheck: Sendable, Hashable {
  enum Key: Sendable, Hashable {
    /// The text of a key of minisign.
    case minisign(String)
    /// An Ed25519 key of 32 bytes, in hexadecimal digits.
    case ed25519(String)
    /// The absolute path of a keyring.
    case openPGP(String)

    /// The suffix of signatures by this kind of key.
    fileprivate var suffix: String {
      switch self {
      case .minisign: ".minisig"
      case .ed25519: ".sig"
      case .openPGP: ".asc"
      }
    }

    fileprivate var stored: String {
      switch self {
      case .minisign(let text): "minisign:" + text
      case .ed25519(let text): "ed25519:" + text
      case .openPGP(let text): "openpgp:" + text
      }
    }

    fileprivate init?(stored: String) {
      let parts = stored.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { return nil }
      switch parts[0] {
      case "minisign": self = .minisign(String(parts[1]))
      case "ed25519": self = .ed25519(String(parts[1]))
      case "openpgp": self = .openPGP(String(parts[1]))
      default: return nil
      }
    }
  }

  enum Signature: Sendable, Hashable {
    case remote(CompanionPlace)
    /// The bytes of a local file.
    case bytes([UInt8])

    private static let prefix = "data:;base64,"

    fileprivate var stored: String {
      switch self {
      case .remote(let place): place.stored
      case .bytes(let bytes): Self.prefix + Data(bytes).base64EncodedString()
      }
    }

    fileprivate init?(stored: String) {
      if stored.hasPrefix(Self.prefix) {
        guard let data = Data(base64Encoded: String(stored.dropFirst(Self.prefix.count))) else { return nil }
        self = .bytes(Array(data))
      } else if let place = CompanionPlace(stored: stored) {
        self = .remote(place)
      } else {
        return nil
      }
    }
  }

  let key: Key
  let signature: Signature

  /// The ledger keeps local signatures, so they are small.
  static let maximumLocalBytes = 16 << 10

  /// `nil` if no signature is to be checked.
  ///
  /// - Parameters:
  ///   - signature: The value of `--signature`.
  ///   - publicKey: The value of `--pubkey`.
  ///   - keyring: The value of `--keyring`.
  ///   - isSingle: Whether there is one file only.
  init?(signature: String?, publicKey: String?, keyring: String?, isSingle: Bool) throws(UsageError) {
    switch (publicKey, keyring) {
    case (nil, nil):
      guard signature != nil else { return nil }
      throw UsageError("--signature needs the key: give --pubkey, or --keyring for OpenPGP")
    case (_?, _?): throw UsageError("--pubkey and --keyring are for different signatures: remove one of them")
    case (let text?, nil): key = try Self.key(text)
    case (nil, let text?): key = .openPGP(try Self.keyring(text))
    }
    let named = signature == "auto" ? nil : signature
    switch try CompanionOption(named ?? key.suffix, "--signature") {
    case .remote(let place): self.signature = .remote(place)
    case .local(let path):
      guard isSingle else {
        throw UsageError("--signature: a local file works with one URL only: it is the signature of one file")
      }
      self.signature = .bytes(try CompanionOption.read(path, atMost: Self.maximumLocalBytes, "--signature"))
    }
  }

  private static let signatureKey = "downpipe.signature"
  private static let keyKey = "downpipe.key"

  /// What a request carries; `nil` if it is missing or unreadable.
  init?(_ metadata: [String: String]) {
    guard let key = metadata[Self.keyKey].flatMap({ Key(stored: $0) }),
      let signature = metadata[Self.signatureKey].flatMap({ Signature(stored: $0) })
    else { return nil }
    self.key = key
    self.signature = signature
  }

  func attach(to metadata: inout [String: String]) {
    metadata[Self.keyKey] = key.stored
    metadata[Self.signatureKey] = signature.stored
  }

  // MARK: Keys

  /// Reads the value of `--pubkey`: a key, or the path of a file with one.
  private static func key(_ text: String) throws(UsageError) -> Key {
    if let key = known(Array(text.utf8)) { return key }
    let bytes = try CompanionOption.read(text, atMost: 4096, "--pubkey: it is not a key, and as a path")
    if let key = known(bytes) { return key }
    throw UsageError(
      "--pubkey: “\(text)” has no key of minisign, and no Ed25519 key: 32 bytes, 64 hexadecimal digits, or base64")
  }

  private static func known(_ bytes: [UInt8]) -> Key? {
    if bytes.count == 32 { return .ed25519(FileDigest(DigestAlgorithm("key"), bytes: bytes).hex) }
    guard let text = String(validating: bytes, as: UTF8.self)?.trimmingCharacters(in: .whitespacesAndNewlines) else {
      return nil
    }
    if (try? MinisignPublicKey(parsing: text)) != nil {
      return text.split(whereSeparator: \.isNewline).last.map { .minisign(String($0)) }
    }
    if text.utf8.count == 64, let key = FileDigest(DigestAlgorithm("key"), hex: text) { return .ed25519(key.hex) }
    guard let data = Data(base64Encoded: text), data.count == 32 else { return nil }
    return .ed25519(FileDigest(DigestAlgorithm("key"), bytes: Array(data)).hex)
  }

  private static func keyring(_ text: String) throws(UsageError) -> String {
    let path = try Folder.absolutePath(text)
    guard Folder.isRegularFile(path), FileManager.default.isReadableFile(atPath: path) else {
      throw UsageError("--keyring: there is no file “\(text)” that can be read")
    }
    return path
  }
}
