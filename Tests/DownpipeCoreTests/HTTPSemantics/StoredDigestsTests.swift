import DownpipeCore
import HangLimit
import Testing

/// Digests in fields of object stores, and `Content-MD5`. The values are those of “123456789”.
@Suite(.endsHangs)
struct StoredDigestsTests {
  static let md5 = "JfnnlDI7RTiF9RgfG2JNCw=="
  static let md5Digest = "md5=25f9e794323b453885f5181f1b624d0b"
  static let crc32c = "4waSgw=="
  static let crc32cDigest = "crc32c=e3069283"
  static let sha256Digest = "sha-256=15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"
  /// The SHA-256 of “123456789”.
  static let right = "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="

  func found(_ fields: HeaderFields, whole: Bool = true) -> [String] {
    ReprDigest.digests(in: fields, isWholeContent: whole).map(\.description)
  }

  @Test func contentMD5() {
    #expect(found(["Content-MD5": Self.md5]) == [Self.md5Digest])
    #expect(found(["Content-MD5": " \(Self.md5) "]) == [Self.md5Digest])
    #expect(found(["Content-MD5": Self.md5], whole: false).isEmpty, "a part has another one, or that of the whole")
    #expect(found(["Content-MD5": Self.md5, "Content-Encoding": "gzip"]).isEmpty)
    #expect(found(["Content-MD5": Self.md5, "Content-Encoding": "identity"]) == [Self.md5Digest])
    for malformed in ["", "x", "25f9e794323b453885f5181f1b624d0b", "JfnnlDI7RTiF9RgfG2JN", Self.md5 + Self.md5] {
      #expect(found(["Content-MD5": malformed]).isEmpty)
    }
    let twice = HeaderFields([
      HeaderField("Content-MD5", Self.md5), HeaderField("Content-MD5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
    ])
    #expect(found(twice).isEmpty)
  }

  @Test func google() {
    let both = [Self.crc32cDigest, Self.md5Digest]
    let one: HeaderFields = ["x-goog-hash": "crc32c=\(Self.crc32c),md5=\(Self.md5)"]
    let two = HeaderFields([
      HeaderField("x-goog-hash", "crc32c=\(Self.crc32c)"), HeaderField("X-Goog-Hash", "md5=\(Self.md5)"),
      HeaderField("x-goog-stored-content-encoding", "identity"),
    ])
    #expect(found(one) == both)
    #expect(found(two) == both)
    #expect(found(two, whole: false) == both, "the field is of the whole object")
  }

  @Test("after transcoding, the hash of the stored bytes is not that of the content")
  func googleTranscoding() {
    func fields(stored: String, sent: String?) -> HeaderFields {
      var fields: HeaderFields = ["x-goog-hash": "crc32c=\(Self.crc32c)", "x-goog-stored-content-encoding": stored]
      if let sent { fields["Content-Encoding"] = sent }
      return fields
    }
    #expect(found(fields(stored: "gzip", sent: nil)).isEmpty)
    #expect(found(fields(stored: "identity", sent: "gzip")).isEmpty)
    #expect(found(fields(stored: "gzip", sent: "gzip")) == [Self.crc32cDigest])
  }

  @Test func amazon() {
    let fields: HeaderFields = [
      "x-amz-checksum-crc32": "y/Q5Jg==", "x-amz-checksum-crc32c": Self.crc32c,
      "x-amz-checksum-sha1": "98O8HYCOBHMq32eZZczDTKeuNEE=",
      "x-amz-checksum-crc64nvme": "rosUhgp5mIg=", "x-amz-checksum-type": "FULL_OBJECT",
    ]
    #expect(
      found(fields) == [
        "sha-1=f7c3bc1d808e04732adf679965ccc34ca7ae3441", Self.crc32cDigest, "crc32=cbf43926",
      ])
    #expect(found(fields, whole: false).isEmpty)
    #expect(found(["x-amz-checksum-sha256": Self.right]) == [Self.sha256Digest])
  }

  @Test("checksums of the parts of an upload are not checksums of the object")
  func amazonMultipart() {
    #expect(found(["x-amz-checksum-sha256": Self.right, "x-amz-checksum-type": "COMPOSITE"]).isEmpty)
    #expect(found(["x-amz-checksum-sha256": Self.right + "-3"]).isEmpty)
    #expect(found(["x-amz-checksum-crc32c": Self.crc32c + "-12", "x-amz-checksum-type": "FULL_OBJECT"]).isEmpty)
  }

  @Test("a weak digest of these fields does not contradict a strong one")
  func weakBesideStrong() {
    let strong = ["Repr-Digest": "sha-256=:\(Self.right):", "Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="] as HeaderFields
    #expect(found(strong) == [Self.sha256Digest])
    let amazon: HeaderFields = ["x-amz-checksum-sha256": Self.right, "x-amz-checksum-crc32": "AAAAAA=="]
    #expect(found(amazon) == [Self.sha256Digest])
    let google: HeaderFields = ["x-goog-hash": "crc32c=AAAAAA==", "x-amz-checksum-sha256": Self.right]
    #expect(found(google) == [Self.sha256Digest])
    let standard: HeaderFields = ["Digest": "md5=\(Self.md5)", "Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="]
    #expect(found(standard) == [Self.md5Digest], "the first of one algorithm counts")
  }

  @Test func crc32cInDigest() {
    #expect(found(["Digest": "CRC32c=e3069283"]) == [Self.crc32cDigest])
    #expect(found(["Digest": "crc32c=72a4DF"]) == ["crc32c=0072a4df"])
    #expect(found(["Digest": "crc32c=123456789"]).isEmpty)
    #expect(found(["Digest": "crc32c=xyz"]).isEmpty)
    #expect(found(["Repr-Digest": "crc32c=:\(Self.crc32c):"]) == [Self.crc32cDigest])
  }
}
