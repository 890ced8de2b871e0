import DownpipeCore
import Foundation
import Testing

@testable import DownpipeChecksum

/// Published test vectors: FIPS 180-4 examples, RFC 1321 §A.5, and the check value of CRC-32.
enum DigestSamples {
  static let abc = Array("abc".utf8)
  static let nineDigits = Array("123456789".utf8)

  static var vectors: [(DigestAlgorithm, [UInt8], String)] {
    var vectors: [(DigestAlgorithm, [UInt8], String)] = [
      (.sha256, abc, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
      (.sha256, [], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      (
        .sha384, abc,
        "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
      ),
      (
        .sha512, abc,
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
          + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
      ),
      (.sha1, abc, "a9993e364706816aba3e25717850c26c9cd0d89d"),
      (.sha1, [], "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
      (.md5, abc, "900150983cd24fb0d6963f7d28e17f72"),
      (.md5, [], "d41d8cd98f00b204e9800998ecf8427e"),
    ]
    vectors.append((.crc32, nineDigits, "cbf43926"))
    vectors.append((.crc32, [], "00000000"))
    // RFC 3720 §B.4, in the order of its bytes.
    vectors.append((.crc32c, nineDigits, "e3069283"))
    vectors.append((.crc32c, [], "00000000"))
    vectors.append((.crc32c, [UInt8](repeating: 0, count: 32), "8a9136aa"))
    vectors.append((.crc32c, [UInt8](repeating: 0xFF, count: 32), "62a8ab43"))
    vectors.append((.crc32c, Array(0..<32), "46dd794e"))
    return vectors
  }

  static let millionA = [UInt8](repeating: 0x61, count: 1_000_000)
  /// The digests of one million times the letter a.
  static let longVectors: [(DigestAlgorithm, String)] = [
    (.sha256, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    (.sha1, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
    (.md5, "7707d6ae4e027c70eea2a935c2296f21"),
    (
      .sha512,
      "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb"
        + "de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b"
    ),
  ]

  /// A computation that received these bytes in chunks of a size.
  static func update(_ computation: inout DigestComputation, with bytes: [UInt8], chunk: Int = .max) {
    var offset = 0
    while offset < bytes.count {
      let end = offset + min(chunk, bytes.count - offset)
      computation.update(bytes.span.bytes.extracting(offset..<end))
      offset = end
    }
  }

  static func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) throws -> FileDigest {
    var computation = try DigestComputation(algorithm)
    update(&computation, with: bytes)
    return computation.finalize()
  }
}

/// A file that exists for one test.
func withFile<Result>(_ bytes: [UInt8], _ body: (String) async throws -> Result) async throws -> Result {
  let folder = FileManager.default.temporaryDirectory.appending(path: "checksum-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: folder) }
  let file = folder.appending(path: "file")
  try Data(bytes).write(to: file)
  return try await body(file.path())
}
