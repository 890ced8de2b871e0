/// Digests of the bytes that a server has stored: `Content-MD5` (RFC 1864), `x-goog-hash` of Google Cloud Storage and
/// `x-amz-checksum-…` of S3.
///
/// No standard says what they are of when a server or a cache on the way changes the content coding, so they count only
/// where the bytes of the reply are those that were stored.
enum StoredDigests {
  /// Returns the digests, those of the first field first.
  ///
  /// - `x-goog-hash` is documented as of the whole object, so it also counts in a reply with a part of it. It does not
  ///   count after transcoding: when the coding of the reply differs from `x-goog-stored-content-encoding`.
  /// - `x-amz-checksum-…` counts in a reply with the whole object alone. A checksum that was computed from the checksums of
  ///   the parts of an upload is not one of the object: `x-amz-checksum-type` is then `COMPOSITE`, and the value ends with
  ///   `-` and the number of parts.
  /// - `Content-MD5` counts in a whole reply without a content coding.
  static func digests(in headers: HeaderFields, isWholeContent: Bool) -> [FileDigest] {
    var digests = googleDigests(in: headers)
    guard isWholeContent, coding(headers, "Content-Encoding").isEmpty else { return digests }
    digests += amazonDigests(in: headers)
    if let text = single(headers, "Content-MD5"), let digest = FileDigest(algorithm: "md5", base64: text) {
      digests.append(digest)
    }
    return digests
  }

  private static func googleDigests(in headers: HeaderFields) -> [FileDigest] {
    let values = headers.values("x-goog-hash")
    guard !values.isEmpty,
      coding(headers, "x-goog-stored-content-encoding") == coding(headers, "Content-Encoding")
    else { return [] }
    return ReprDigest.parseLegacy(values.joined(separator: ","))
  }

  /// The suffixes of the fields, which are also names of algorithms. CRC-64/NVME is not computed here.
  private static let amazonAlgorithms = ["sha256", "sha1", "crc32c", "crc32"]

  private static func amazonDigests(in headers: HeaderFields) -> [FileDigest] {
    if let type = single(headers, "x-amz-checksum-type"), !type.caseInsensitivelyEquals("FULL_OBJECT") { return [] }
    return amazonAlgorithms.compactMap { name in
      guard let text = single(headers, "x-amz-checksum-\(name)"), !text.contains("-") else { return nil }
      return FileDigest(algorithm: name, base64: text)
    }
  }

  /// The value of a field that occurs once, or several times with the same value; `nil` otherwise.
  private static func single(_ headers: HeaderFields, _ name: String) -> String? {
    let values = headers.values(name)
    guard let first = values.first, values.dropFirst().allSatisfy({ $0 == first }), first.utf8.count <= 256 else {
      return nil
    }
    return first.trimmingHTTPWhitespace
  }

  /// The codings in a field, in lower case; empty for identity.
  private static func coding(_ headers: HeaderFields, _ name: String) -> String {
    let text = headers.values(name).joined(separator: ",").trimmingHTTPWhitespace.lowercased()
    return text == "identity" ? "" : text == "x-gzip" ? "gzip" : text
  }
}
