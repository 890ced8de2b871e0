/// The content codings of a file (RFC 9110 §8.4), and whether the coded bytes are the file.
package struct ContentCoding: Sendable, Hashable {
  /// The most codings of a file that are removed. Servers use one, and two where a proxy adds its own; more are an attack.
  static let maximumCount = 2

  /// The codings in lower case under their registered names, in the order in which they were applied.
  package let codings: [String]

  /// Parses the value of ``SourceReply/contentCoding`` or ``Checkpoint/contentCoding``; `nil` for bytes without a coding
  /// and for bytes that the transport has decoded already.
  package init?(_ text: String?) {
    guard let text, !Self.isDecodedByTransport(text) else { return nil }
    codings = text.split(separator: ",").compactMap { part in
      let name = part.trimmingHTTPWhitespace.lowercased()
      return name.isEmpty || name == "identity" ? nil : Self.registeredNames[name, default: name]
    }
    if codings.isEmpty { return nil }
  }

  /// Whether the transport has decoded the bytes: no range of the server continues them.
  static func isDecodedByTransport(_ text: String) -> Bool { text.hasPrefix("decoded-") }

  /// Returns the codings to remove, the outermost first; empty when the coded bytes are the file.
  ///
  /// Servers send the file `a.tar.gz` with `Content-Encoding: gzip`, because it is a coded tar archive. Browsers save it
  /// as it is, and so do we: otherwise the name, and the checksum next to the link, would be wrong. The coding that a
  /// name or a type states is always the innermost one: `a.tar.gz` in the codings `gzip, br` is decoded from `br` only.
  /// - Parameters:
  ///   - names: The names that the server and the request give to the file.
  ///   - mediaType: The `Content-Type`.
  package func toRemove(names: [String?], mediaType: String?) -> [String] {
    guard let inner = codings.first, let form = Self.forms[inner] else { return codings.reversed() }
    let isFile = names.contains { $0.map(form.isStated(inName:)) ?? false } || form.isStated(inType: mediaType)
    return (isFile ? codings.dropFirst() : codings[...]).reversed()
  }

  /// Old names that recipients must treat like the new ones (RFC 9110 §8.4.1), and those that Apache sends by default.
  private static let registeredNames = [
    "x-gzip": "gzip", "x-compress": "compress", "x-bzip2": "bzip2", "x-bzip": "bzip2", "x-xz": "xz", "x-zstd": "zstd",
  ]

  /// The files that are coded bytes by definition.
  private struct Form: Sendable {
    var suffixes: Set<String>
    var types: Set<String>
    var structuredSuffix: String?

    func isStated(inName name: String) -> Bool {
      guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return false }
      return suffixes.contains(name[name.index(after: dot)...].lowercased())
    }

    func isStated(inType field: String?) -> Bool {
      guard let field else { return false }
      let type = MediaType.withoutParameters(field)
      return types.contains(type) || structuredSuffix.map(type.hasSuffix) ?? false
    }
  }

  private static let forms: [String: Form] = [
    "gzip": Form(
      suffixes: ["gz", "gzip", "tgz", "taz", "svgz", "emz", "wmz"],
      types: [
        "application/gzip", "application/x-gzip", "application/x-gunzip", "application/gzipped", "application/x-tgz",
        "application/gzip-compressed", "application/x-gzip-compressed", "application/x-compressed-tar",
        "application/x-compressed",
      ], structuredSuffix: "+gzip"),
    "compress": Form(suffixes: ["z", "taz", "tz"], types: ["application/x-compress", "application/x-compressed"]),
    "br": Form(suffixes: ["br"], types: ["application/x-brotli", "application/brotli"]),
    "zstd": Form(
      suffixes: ["zst", "zstd", "tzst"],
      types: ["application/zstd", "application/x-zstd", "application/x-zstd-compressed-tar"],
      structuredSuffix: "+zstd"),
    "bzip2": Form(
      suffixes: ["bz2", "bz", "tbz", "tbz2"],
      types: ["application/x-bzip2", "application/x-bzip", "application/x-bzip-compressed-tar"]),
    "xz": Form(suffixes: ["xz", "txz"], types: ["application/x-xz", "application/x-xz-compressed-tar"]),
  ]
}
