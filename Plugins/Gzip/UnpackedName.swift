import DownpipeCore

/// The name that a file gets when it is unpacked.
enum UnpackedName {
  /// Suffixes of gzip files, and what stands in their place afterwards.
  private static let suffixes = [(".gz", ""), (".tgz", ".tar"), (".taz", ".tar"), (".svgz", ".svg")]

  /// The name without the suffix of a gzip file; the name itself when it has none, or when nothing that
  /// may be a file's name would be left (`.gz`, `..gz`).
  static func stripping(_ name: String) -> String {
    let lower = name.lowercased()
    for (suffix, replacement) in suffixes where lower.hasSuffix(suffix) && lower.count == name.count {
      let stem = name.dropLast(suffix.count)
      let result = stem + replacement
      return stem.isEmpty || !isComponent(String(result)) ? name : String(result)
    }
    return name
  }

  /// The name that a gzip header gives, without its folders; `nil` when it is not safe just as it is.
  ///
  /// RFC 1952 §2.3.1 says that it is ISO 8859-1 without folders; most programs write UTF-8, and a hostile
  /// one anything at all.
  static func fromHeader(_ bytes: [UInt8]) -> String? {
    let text =
      String(validating: bytes, as: UTF8.self)
      ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    let scalars = text.unicodeScalars
    let start = scalars.lastIndex { $0 == "/" || $0 == "\\" }.map(scalars.index(after:)) ?? scalars.startIndex
    let name = String(scalars[start...])
    // A name that has to be mended was not meant for us: the packed file's own is better.
    return isComponent(name) && SafeFileName.make(from: name, url: nil) == name ? name : nil
  }

  /// Whether the text is one component of a path.
  static func isComponent(_ name: String) -> Bool {
    !name.isEmpty && name != "." && name != ".." && !name.utf8.contains(0x2F) && !name.utf8.contains(0)
  }
}
