import DownpipeCore

/// The name of a decompressed file.
package enum UnpackedName {
  /// The suffixes of gzip files, and their replacements.
  package static let suffixes = [(".gz", ""), (".tgz", ".tar"), (".taz", ".tar"), (".svgz", ".svg")]

  /// The name without the first of the suffixes that it has, by default those of gzip files; the name itself if it has
  /// none, or if the rest is not a file name (`.gz`, `..gz`).
  package static func stripping(_ name: String, _ suffixes: [(String, String)] = suffixes) -> String {
    let lower = name.lowercased()
    guard lower.count == name.count, let (suffix, replacement) = suffixes.first(where: { lower.hasSuffix($0.0) }) else {
      return name
    }
    let stem = name.dropLast(suffix.count)
    let result = String(stem + replacement)
    return stem.isEmpty || !isComponent(result) ? name : result
  }

  /// The name in a gzip header without its folders; `nil` if the name is not safe without changes.
  ///
  /// By RFC 1952 §2.3.1 it is ISO 8859-1 without folders. Most programs write UTF-8, and an attacker can write
  /// anything.
  static func fromHeader(_ bytes: [UInt8]) -> String? {
    let text =
      String(validating: bytes, as: UTF8.self)
      ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    let scalars = text.unicodeScalars
    let start = scalars.lastIndex { $0 == "/" || $0 == "\\" }.map(scalars.index(after:)) ?? scalars.startIndex
    let name = String(scalars[start...])
    // The name of the compressed file is better than a changed name from the header.
    return isComponent(name) && SafeFileName.make(from: name, url: nil) == name ? name : nil
  }

  /// Whether the text is one path component.
  package static func isComponent(_ name: String) -> Bool {
    !name.isEmpty && name != "." && name != ".." && !name.utf8.contains(0x2F) && !name.utf8.contains(0)
  }
}
