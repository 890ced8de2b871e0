import Foundation

/// Digests of whole representations in header fields.
package enum ReprDigest {
  /// Returns the digests in the fields `Repr-Digest`, `Content-Digest` (RFC 9530) and the older `Digest` (RFC 3230), in
  /// this order, then those of ``StoredDigests``. Of several digests of one algorithm the first counts.
  ///
  /// `Repr-Digest` and `Digest` apply to the whole representation in its content coding, also in a reply with a part of
  /// it. `Content-Digest` applies to the content of the message alone, also in its coding, so it is used only if
  /// `isWholeContent` says that the content is the whole representation. Algorithms without a known length are skipped, and so
  /// are malformed members of `Digest`; the other two are structured dictionaries (RFC 9651), which are ignored as a whole if
  /// they are malformed.
  ///
  /// The fields of ``StoredDigests`` are those of other specifications and of before them. Their weak digests (MD5, SHA-1,
  /// CRC) count only if there is no strong one: all digests have to match, and an outdated weak one must not refuse a file
  /// that a strong one proves right.
  package static func digests(in headers: HeaderFields, isWholeContent: Bool) -> [FileDigest] {
    var found: [FileDigest] = []
    func add(_ digests: [FileDigest]) {
      for digest in digests where !found.contains(where: { $0.algorithm == digest.algorithm }) {
        found.append(digest)
      }
    }
    func field(_ name: String) -> String? {
      let values = headers.values(name)
      return values.isEmpty ? nil : values.joined(separator: ",")
    }
    if let field = field("Repr-Digest") { add(parse(field)) }
    if isWholeContent, let field = field("Content-Digest") { add(parse(field)) }
    if let field = field("Digest") { add(parseLegacy(field)) }
    let stored = StoredDigests.digests(in: headers, isWholeContent: isWholeContent)
    add(stored.filter(\.algorithm.isStrong))
    if !found.contains(where: \.algorithm.isStrong) { add(stored) }
    return found
  }

  /// Returns the digests in a trailer section. Only `Repr-Digest` and `Content-Digest` are defined for it (RFC 9530, and RFC
  /// 9110 §6.5.1).
  package static func digests(inTrailer fields: HeaderFields, isWholeContent: Bool) -> [FileDigest] {
    digests(
      in: HeaderFields(
        fields.fields.filter { field in
          ["Repr-Digest", "Content-Digest"].contains { field.name.caseInsensitivelyEquals($0) }
        }), isWholeContent: isWholeContent)
  }

  /// Parses the byte sequences of a structured dictionary, `sha-256=:…:, sha-512=:…:`. A malformed dictionary has none.
  private static func parse(_ field: String) -> [FileDigest] {
    (StructuredField.dictionary(field) ?? []).compactMap { key, member in
      let algorithm = DigestAlgorithm(key)
      guard case .item(let item) = member, case .bytes(let bytes) = item.value, algorithm.byteCount == bytes.count
      else {
        return nil
      }
      return FileDigest(algorithm, bytes: bytes)
    }
  }

  /// Parses `SHA-256=base64, md5=base64, crc32c=hex`.
  static func parseLegacy(_ field: String) -> [FileDigest] {
    members(of: field).compactMap { member in
      guard let equals = member.firstIndex(of: "=") else { return nil }
      let (name, value) = (member[..<equals], member[member.index(after: equals)...])
      // The checksum of RFC 5843 has 1 to 8 hexadecimal digits. Cloud Storage writes it as its other digests.
      if DigestAlgorithm(String(name)) == .crc32c, value.last != "=" {
        guard value.utf8.count <= 8 else { return nil }
        return FileDigest(.crc32c, hex: String(repeating: "0", count: 8 - value.utf8.count) + value)
      }
      return FileDigest(algorithm: name, base64: value)
    }
  }

  /// Returns the members between commas that are not inside a string. Their number is limited, because the field comes
  /// from an untrusted server.
  private static func members(of field: String) -> [String] {
    var members: [String] = []
    var member = ""
    var isQuoted = false
    var isEscaped = false
    for character in field.prefix(8192) {
      if isEscaped {
        isEscaped = false
      } else if isQuoted, character == "\\" {
        isEscaped = true
      } else if character == "\"" {
        isQuoted.toggle()
      } else if character == ",", !isQuoted {
        members.append(member.trimmingHTTPWhitespace)
        member = ""
        continue
      }
      member.append(character)
    }
    if !isQuoted { members.append(member.trimmingHTTPWhitespace) }
    return Array(members.filter { !$0.isEmpty }.prefix(32))
  }
}

extension FileDigest {
  /// Creates a digest from base64; `nil` for an algorithm without a known length, for another length, and for text that
  /// is not base64.
  init?(algorithm: some StringProtocol, base64: some StringProtocol) {
    let algorithm = DigestAlgorithm(String(algorithm))
    // RFC 8941 §4.2.7: padding may be missing.
    var text = String(base64)
    if text.utf8.count % 4 != 0 { text += String(repeating: "=", count: 4 - text.utf8.count % 4) }
    guard let count = algorithm.byteCount, let data = Data(base64Encoded: text), data.count == count else { return nil }
    self.init(algorithm, bytes: Array(data))
  }
}
