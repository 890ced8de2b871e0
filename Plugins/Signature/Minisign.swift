public import DownpipeCore
import Foundation

/// A public key of minisign.
public struct MinisignPublicKey: Sendable, Hashable {
  /// The number that the key's signatures carry: 8 bytes.
  public let id: [UInt8]
  /// The Ed25519 key: 32 bytes.
  public let key: [UInt8]

  /// Parses the text of a key, such as `RWQf6LRC…`: the second line of a `minisign.pub`, or the whole file.
  ///
  /// - Throws: `DownloadError` with `.invalidPipeline`.
  public init(parsing text: String) throws(DownloadError) {
    let last = text.prefix(4096).split(whereSeparator: \.isNewline).last.map(String.init) ?? ""
    guard let bytes = Data(base64Encoded: last).map(Array.init), bytes.count == 42,
      Array(bytes[..<2]) == MinisignSignature.legacy
    else {
      throw DownloadError(
        .invalidPipeline,
        "“\(last.prefix(60))” is not a public key of minisign: it has 56 characters and begins with RW")
    }
    id = Array(bytes[2..<10])
    key = Array(bytes[10...])
  }
}

/// A signature file of minisign: an untrusted comment, the signature, a trusted comment, and the signature of both.
public struct MinisignSignature: Sendable, Hashable {
  /// The most bytes of a file: 16 KiB. minisign accepts comments of 1,024 and 8,192 bytes.
  public static let maximumBytes = 16 << 10

  static let legacy = Array("Ed".utf8)
  private static let prehashed = Array("ED".utf8)
  private static let untrusted = Array("untrusted comment: ".utf8)
  private static let trusted = Array("trusted comment: ".utf8)

  /// Whether the signature is of the file's BLAKE2b-512 digest (`ED`), and not of the file itself (`Ed`).
  public let isPrehashed: Bool
  /// The number of the key that has signed.
  public let keyID: [UInt8]
  /// The Ed25519 signature of the file or its digest: 64 bytes.
  public let signature: [UInt8]
  /// The bytes of the trusted comment. They prove nothing before ``globalSignature`` is verified.
  public let trustedComment: [UInt8]
  /// The Ed25519 signature of ``signature`` and ``trustedComment``: 64 bytes.
  public let globalSignature: [UInt8]

  /// The bytes that the global signature is of.
  var globalMessage: [UInt8] { signature + trustedComment }

  /// Parses a file of four lines. The untrusted comment is ignored.
  ///
  /// - Throws: `DownloadError` with `.badSignature`.
  public init(parsing bytes: [UInt8]) throws(DownloadError) {
    func malformed(_ reason: String) -> DownloadError {
      DownloadError(.badSignature, "the signature file is not one of minisign: \(reason)")
    }
    guard bytes.count <= Self.maximumBytes else { throw malformed("it has more than \(Self.maximumBytes) bytes") }
    var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
      line.last == UInt8(ascii: "\r") ? line.dropLast() : line
    }
    while lines.last?.isEmpty == true { lines.removeLast() }
    guard lines.count == 4 else { throw malformed("it has \(lines.count) lines instead of 4") }
    guard lines[0].starts(with: Self.untrusted) else { throw malformed("it does not begin with an untrusted comment") }
    guard let packet = Self.decode(lines[1], count: 74) else { throw malformed("its signature has a wrong length") }
    switch Array(packet[..<2]) {
    case Self.prehashed: isPrehashed = true
    case Self.legacy: isPrehashed = false
    default: throw malformed("its algorithm is unknown")
    }
    guard lines[2].starts(with: Self.trusted) else { throw malformed("it has no trusted comment") }
    guard let global = Self.decode(lines[3], count: 64) else {
      throw malformed("the signature of its trusted comment has a wrong length")
    }
    keyID = Array(packet[2..<10])
    signature = Array(packet[10...])
    trustedComment = Array(lines[2].dropFirst(Self.trusted.count))
    globalSignature = global
  }

  private static func decode(_ line: ArraySlice<UInt8>, count: Int) -> [UInt8]? {
    guard let data = Data(base64Encoded: Data(line)), data.count == count else { return nil }
    return Array(data)
  }
}

extension [UInt8] {
  /// The number of a key as minisign prints it: the bytes in reverse order, in hexadecimal.
  var minisignNumber: String {
    reversed().map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined()
  }
}
