import DownpipeDigest
import Testing

/// Published test vectors.
enum DigestVectors {
  /// FIPS 180-4 with the examples of NIST, and RFC 1321 §A.5.
  static let digests: [(HashFunction, String, String)] = [
    (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (.sha256, twoBlocks, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
    (
      .sha384, "",
      "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b"
    ),
    (
      .sha384, "abc",
      "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
    ),
    (
      .sha512, "",
      "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
        + "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
    ),
    (
      .sha512, "abc",
      "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
    ),
    (.sha1, "", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    (.sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    (.sha1, twoBlocks, "84983e441c3bd26ebaae4aa1f95129e5e54670f1"),
    (.md5, "", "d41d8cd98f00b204e9800998ecf8427e"),
    (.md5, "a", "0cc175b9c0f1b6a831c399e269772661"),
    (.md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
    (.md5, "message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
    (.md5, "abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
    (
      .md5, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"
    ),
    (.md5, String(repeating: "1234567890", count: 8), "57edf4a22be3c955ac49da2e2107b67a"),
  ]
  private static let twoBlocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"

  /// One million times the letter a (FIPS 180-4).
  static let millions: [(HashFunction, String)] = [
    (.sha256, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    (
      .sha384,
      "9d0e1809716474cb086e834e310a4a1ced149e9c00f248527972cec5704c2a5b07b8b3dc38ecc4ebae97ddd87f3d8985"
    ),
    (
      .sha512,
      "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb"
        + "de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b"
    ),
    (.sha1, "34aa973cd4c4daa4f61eeb2bdbad27316534016f"),
    (.md5, "7707d6ae4e027c70eea2a935c2296f21"),
  ]

  struct Code: Sendable, CustomTestStringConvertible {
    var function: HashFunction
    var key: [UInt8]
    var message: [UInt8]
    var hex: String

    init(_ function: HashFunction, _ key: [UInt8], _ message: [UInt8], _ hex: String) {
      (self.function, self.key, self.message, self.hex) = (function, key, message, hex)
    }

    init(_ function: HashFunction, _ key: [UInt8], _ message: String, _ hex: String) {
      self.init(function, key, Array(message.utf8), hex)
    }

    var testDescription: String { "\(function), \(hex.prefix(8))…" }
  }

  private static func bytes(_ byte: UInt8, _ count: Int) -> [UInt8] { [UInt8](repeating: byte, count: count) }

  /// RFC 4231 (SHA-2), RFC 2202 (SHA-1 and MD5), and an empty key.
  static let codes: [Code] = [
    Code(.sha256, bytes(0x0B, 20), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    Code(
      .sha256, Array("Jefe".utf8), "what do ya want for nothing?",
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    Code(
      .sha256, bytes(0xAA, 20), bytes(0xDD, 50), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
    Code(
      .sha256, bytes(0xAA, 131), "Test Using Larger Than Block-Size Key - Hash Key First",
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
    Code(
      .sha384, bytes(0x0B, 20), "Hi There",
      "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6"),
    Code(
      .sha384, Array("Jefe".utf8), "what do ya want for nothing?",
      "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649"),
    Code(
      .sha512, bytes(0x0B, 20), "Hi There",
      "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
        + "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"),
    Code(
      .sha512, Array("Jefe".utf8), "what do ya want for nothing?",
      "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
        + "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"),
    Code(.sha1, bytes(0x0B, 20), "Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
    Code(.sha1, Array("Jefe".utf8), "what do ya want for nothing?", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
    Code(
      .sha1, bytes(0xAA, 80), "Test Using Larger Than Block-Size Key - Hash Key First",
      "aa4ae5e15272d00e95705637ce8a3b55ed402112"),
    Code(.md5, bytes(0x0B, 16), "Hi There", "9294727a3638bb1c13f48ef8158bfc9d"),
    Code(.md5, Array("Jefe".utf8), "what do ya want for nothing?", "750c783e6ab0b503eaa86e310a5db738"),
    Code(
      .md5, bytes(0xAA, 80), "Test Using Larger Than Block-Size Key - Hash Key First",
      "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd"),
    Code(.sha256, [], [], "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
  ]
}
