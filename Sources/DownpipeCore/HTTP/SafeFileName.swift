public import Foundation

/// Makes names from the network, and titles, into file names that are safe on every file system, including those of
/// Windows and memory cards.
///
/// ```swift
/// SafeFileName.make(from: "../../etc/passwd", url: nil)     // passwd
/// SafeFileName.make(fromTitle: "AC/DC: \"Live\"?")           // AC-DC- 'Live'_
/// DownloadRequest(url, destination: .init(name: SafeFileName.make(fromTitle: "AC/DC") + ".mp3"))
/// ```
public enum SafeFileName {
  /// The maximum length of a name in bytes of UTF-8. File systems allow 255; the rest is left for suffixes.
  public static let maximumLength = 200

  /// Returns a single path component that is safe on every file system.
  ///
  /// The result is made from the first of these that yields a name: the suggestion, the last component of the URL's
  /// path (percent-decoded), the fallback, `download`. Only the last component of each counts; both `/` and `\` are
  /// separators.
  ///
  /// Control characters and invisible formatting characters, such as bidirectional overrides, are removed. So are dots
  /// and blanks at both ends, so that the name is never hidden, and never `.`, `..` or `.downpipe`. Characters that
  /// Windows or FAT file systems reject are replaced: `:` and `|` by `-`, `"` by `'`, and `?`, `*`, `<` and `>` by `_`.
  /// Names of Windows devices get a leading underscore. Long names are cut to ``maximumLength`` bytes and keep their
  /// extension. Unicode normalisation is not changed.
  public static func make(from suggested: String?, url: URL?, fallback: String = "download") -> String {
    suggested.flatMap(component(of:)) ?? url.flatMap(lastPart(of:)).flatMap(component(of:))
      ?? component(of: fallback) ?? "download"
  }

  /// Returns a safe file name for a title, such as that of a song or an episode.
  ///
  /// In a title, `/` and `\` are not separators: both become `-`. Otherwise the rules of ``make(from:url:fallback:)``
  /// apply.
  public static func make(fromTitle title: String, fallback: String = "download") -> String {
    // Keep the beginning of a long title; of a name from the network the end is kept.
    let scalars = title.unicodeScalars.prefix(4096).map { $0 == "/" || $0 == "\\" ? "-" : $0 }
    var text = String.UnicodeScalarView()
    text.append(contentsOf: scalars)
    return make(from: String(text), url: nil, fallback: fallback)
  }

  /// Returns the last non-empty component of the path, percent-decoded after splitting.
  private static func lastPart(of url: URL) -> String? {
    let path = URLText(url).path
    // Other URLs, such as `data:` URLs, have no hierarchical path.
    let slash = UInt8(ascii: "/")
    guard path.utf8.first == slash, let last = path.utf8.lastIndex(where: { $0 != slash }) else { return nil }
    let start = path.utf8[..<last].lastIndex(of: slash).map { path.utf8.index(after: $0) } ?? path.startIndex
    let part = path[start..<path.utf8.index(after: last)]
    if isPlain(part) { return String(part) }
    let octets = Array(part.utf8)
    guard let bytes = PercentEncoding.decode(octets) else { return String(part) }
    return Charset.utf8.decode(bytes) ?? Charset.latin1.decode(bytes)
  }

  private static func component(of text: String) -> String? {
    if isPlain(text[...]), !isDeviceName(text) { return text }
    // The end of the text counts. A name may be as long as a header field.
    let scalars = text.unicodeScalars.suffix(4096)
    let last = scalars.split(omittingEmptySubsequences: true) { $0 == "/" || $0 == "\\" }.last
    var kept = String.UnicodeScalarView()
    for scalar in last ?? scalars[scalars.endIndex...] where isKept(scalar) {
      // Tabs and unusual blanks are hard to type; the ideographic space is the blank of Chinese and Japanese.
      kept.append(scalar.properties.isWhitespace && scalar != ideographicSpace ? " " : replacement(for: scalar))
    }
    let trimmed = trim(String(kept))
    guard !trimmed.isEmpty else { return nil }
    let harmless = isDeviceName(trimmed) ? "_" + trimmed : trimmed
    return shorten(harmless)
  }

  /// Whether a name consists only of ASCII letters, digits, `-`, `_` and inner dots, as most names do, and needs no
  /// change.
  private static func isPlain(_ name: Substring) -> Bool {
    let (dot, count) = (UInt8(ascii: "."), name.utf8.count)
    guard (1...maximumLength).contains(count), name.utf8.first != dot, name.utf8.last != dot else { return false }
    return name.utf8.allSatisfy { byte in
      switch byte {
      case 0x61...0x7A, 0x41...0x5A, 0x30...0x39, dot, UInt8(ascii: "-"), UInt8(ascii: "_"): true
      default: false
      }
    }
  }

  /// Returns the replacement for a character that some file systems reject.
  private static func replacement(for scalar: Unicode.Scalar) -> Unicode.Scalar {
    switch scalar {
    case ":", "|": "-"
    case "\"": "'"
    case "?", "*", "<", ">": "_"
    default: scalar
    }
  }

  private static func isKept(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .surrogate: false
    // Joiners are part of the spelling of Persian words and of emoji; other formatting is invisible or deceptive.
    case .format: scalar.value == 0x200C || scalar.value == 0x200D
    default: true
    }
  }

  private static let ideographicSpace: Unicode.Scalar = "\u{3000}"

  private static func trim(_ text: String) -> String {
    func isEdge(_ scalar: Unicode.Scalar) -> Bool { scalar == "." || scalar == " " || scalar == ideographicSpace }
    let scalars = text.unicodeScalars
    guard let first = scalars.firstIndex(where: { !isEdge($0) }), let last = scalars.lastIndex(where: { !isEdge($0) })
    else { return "" }
    return String(scalars[first...last])
  }

  /// Whether the name denotes a device that exists in every folder on Windows, with any extension.
  private static func isDeviceName(_ name: String) -> Bool {
    // The names of devices begin with these letters, after the blanks that are trimmed.
    guard let first = name.utf8.first(where: { $0 != 0x20 }), "CPANLcpanl".utf8.contains(first) else { return false }
    let stem = trim(String(name.prefix { $0 != "." && $0 != ":" })).uppercased()
    if ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"].contains(stem) { return true }
    guard stem.count == 4, stem.hasPrefix("COM") || stem.hasPrefix("LPT"), let last = stem.last else { return false }
    return "0123456789¹²³".contains(last)
  }

  private static func shorten(_ name: String) -> String {
    guard name.utf8.count > maximumLength else { return name }
    let ending = self.ending(of: name)
    let room = maximumLength - ending.utf8.count
    let stem = name.unicodeScalars.dropLast(ending.unicodeScalars.count)
    var kept = ""
    for character in String(stem) {
      guard kept.utf8.count + character.utf8.count <= room else { break }
      kept.append(character)
    }
    if kept.isEmpty {
      // The name begins with one character that has very many combining marks.
      for scalar in stem where kept.utf8.count + UTF8.width(scalar) <= room { kept.unicodeScalars.append(scalar) }
    }
    return trim(kept) + ending
  }

  /// Returns the extension with its dot, and both extensions for `.tar.gz` and similar names; empty when there is none
  /// of a usual length.
  private static func ending(of name: String) -> String {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count >= 2, let last = parts.last, (1...16).contains(last.utf8.count),
      !last.contains(" ")
    else { return "" }
    if parts.count >= 3, parts[parts.count - 2].caseInsensitivelyEquals("tar") {
      return ".\(parts[parts.count - 2]).\(last)"
    }
    return ".\(last)"
  }
}

extension UTF8 {
  fileprivate static func width(_ scalar: Unicode.Scalar) -> Int { UTF8.encode(scalar)?.count ?? 0 }
}
