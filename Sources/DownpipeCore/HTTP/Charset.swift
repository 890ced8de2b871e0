import Foundation

/// The character sets of file names in HTTP header fields.
struct Charset: Sendable {
  private let encoding: String.Encoding

  static let utf8 = Charset(encoding: .utf8)
  static let latin1 = Charset(encoding: .isoLatin1)

  private init(encoding: String.Encoding) { self.encoding = encoding }

  /// Creates a charset from its IANA name or a common misspelling of it (`utf8`, `iso88591`); `nil` for an unknown
  /// name.
  init?(name: String) {
    let key = name.lowercased().filter { $0 != "-" && $0 != "_" }
    guard let encoding = Self.encodings[key] else { return nil }
    self.encoding = encoding
  }

  /// Returns the text; `nil` when the bytes are not valid in this charset.
  func decode(_ bytes: [UInt8]) -> String? {
    switch encoding {
    case .utf8: String(validating: bytes, as: UTF8.self)
    case .isoLatin1: String(String.UnicodeScalarView(bytes.map(Self.windows1252)))
    case .japaneseEUC: ShiftJIS.bytes(fromEUC: bytes).flatMap { String(bytes: $0, encoding: .shiftJIS) }
    default: String(bytes: bytes, encoding: encoding)
    }
  }

  /// Returns the character of a byte of Latin-1. As in browsers, bytes that are control characters there are those of
  /// Windows-1252, which Windows servers send under this name (WHATWG Encoding).
  private static func windows1252(_ byte: UInt8) -> Unicode.Scalar {
    guard (0x80..<0xA0).contains(byte) else { return Unicode.Scalar(byte) }
    return highCharacters[Int(byte) - 0x80]
  }

  /// The characters 0x80 to 0x9F of Windows-1252.
  private static let highCharacters: [Unicode.Scalar] = [
    "€", "\u{81}", "‚", "ƒ", "„", "…", "†", "‡", "ˆ", "‰", "Š", "‹", "Œ", "\u{8D}", "Ž", "\u{8F}",
    "\u{90}", "‘", "’", "“", "”", "•", "–", "—", "˜", "™", "š", "›", "œ", "\u{9D}", "ž", "Ÿ",
  ]

  /// RFC 8187 requires UTF-8, and RFC 5987 required ISO-8859-1. Asian and Greek servers still send the others.
  private static let encodings: [String: String.Encoding] = [
    "utf8": .utf8, "usascii": .ascii, "ascii": .ascii,
    "iso88591": .isoLatin1, "latin1": .isoLatin1,
    "windows1250": .windowsCP1250, "windows1251": .windowsCP1251, "windows1252": .isoLatin1,
    "windows1253": .windowsCP1253, "windows1254": .windowsCP1254,
    "shiftjis": .shiftJIS, "sjis": .shiftJIS, "eucjp": .japaneseEUC, "iso2022jp": .iso2022JP,
    "iso88597": .coreFoundation(0x0207), "euckr": .coreFoundation(0x0940), "ksc5601": .coreFoundation(0x0940),
    "ksc56011987": .coreFoundation(0x0940), "gb2312": .coreFoundation(0x0632), "gbk": .coreFoundation(0x0632),
    "gb18030": .coreFoundation(0x0632), "big5": .coreFoundation(0x0A03),
  ]
}

extension String.Encoding {
  /// An encoding that Foundation supports only by its CoreFoundation number (CFStringEncodingExt.h).
  fileprivate static func coreFoundation(_ number: UInt) -> String.Encoding {
    String.Encoding(rawValue: 0x8000_0000 | number)
  }
}

/// Shift JIS, which Foundation decodes on all platforms, unlike EUC-JP.
private enum ShiftJIS {
  /// Converts EUC-JP: both are encodings of the rows and cells of JIS X 0208, and of half-width katakana.
  /// - Returns: `nil` for bytes that are not EUC-JP, and for the rare characters of JIS X 0212, which Shift JIS lacks.
  static func bytes(fromEUC octets: [UInt8]) -> [UInt8]? {
    var result: [UInt8] = []
    var rest = octets[...]
    while let lead = rest.popFirst() {
      if lead < 0x80 {
        result.append(lead)
        continue
      }
      guard let trail = rest.popFirst() else { return nil }
      switch (lead, trail) {
      case (0x8E, 0xA1...0xDF):
        result.append(trail)
      case (0xA1...0xFE, 0xA1...0xFE):
        let (row, cell) = (lead - 0xA0, trail - 0xA0)
        result.append((row <= 62 ? 0x81 : 0xC1) + (row - 1) / 2)
        // Two rows share a lead byte. The trail byte 0x7F is not used.
        result.append(row.isMultiple(of: 2) ? cell + 0x9E : cell + (cell < 64 ? 0x3F : 0x40))
      default:
        return nil
      }
    }
    return result
  }
}
