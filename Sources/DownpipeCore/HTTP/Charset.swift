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
    case .isoLatin1: String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    default: String(bytes: bytes, encoding: encoding)
    }
  }

  /// RFC 8187 requires UTF-8, and RFC 5987 required ISO-8859-1. Asian and Greek servers still send the others.
  private static let encodings: [String: String.Encoding] = [
    "utf8": .utf8, "usascii": .ascii, "ascii": .ascii,
    "iso88591": .isoLatin1, "latin1": .isoLatin1,
    "windows1250": .windowsCP1250, "windows1251": .windowsCP1251, "windows1252": .windowsCP1252,
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

/// Percent-encoding (RFC 3986 §2.1).
enum PercentEncoding {
  /// Returns the decoded octets; `nil` when a percent sign is not followed by two hexadecimal digits.
  static func decode(_ octets: [UInt8]) -> [UInt8]? {
    var result: [UInt8] = []
    result.reserveCapacity(octets.count)
    var index = 0
    while index < octets.count {
      if octets[index] == UInt8(ascii: "%") {
        guard index + 2 < octets.count, let high = octets[index + 1].hexDigitValue,
          let low = octets[index + 2].hexDigitValue
        else { return nil }
        result.append(high << 4 | low)
        index += 3
      } else {
        result.append(octets[index])
        index += 1
      }
    }
    return result
  }
}

/// Encoded words (RFC 2047): `=?charset?B?…?=` and `=?charset?Q?…?=`.
enum EncodedWord {
  /// Decodes a text of words separated by blanks, some of which are encoded; `nil` when no word is encoded, or one is
  /// malformed.
  ///
  /// The blanks between the words are removed, as browsers do.
  static func decode(_ text: String) -> String? {
    var result = ""
    var found = false
    for word in text.split(whereSeparator: { $0 == " " || $0 == "\t" }) {
      guard word.hasPrefix("=?") else {
        result += word
        continue
      }
      let parts = word.split(separator: "?", maxSplits: 4, omittingEmptySubsequences: false)
      guard parts.count == 5, parts[4] == "=", let charset = Charset(name: String(parts[1])) else { return nil }
      let bytes: [UInt8]?
      switch parts[2] {
      case "b", "B":
        bytes = Data(base64Encoded: String(parts[3])).map { Array($0) }
      case "q", "Q":
        let octets = parts[3].utf8.map { octet -> UInt8 in
          switch octet {
          case UInt8(ascii: "_"): 0x20
          case UInt8(ascii: "="): UInt8(ascii: "%")
          default: octet
          }
        }
        // A percent sign in the word would be mistaken for an escape.
        bytes = parts[3].contains("%") ? nil : PercentEncoding.decode(octets)
      default:
        bytes = nil
      }
      guard let bytes, let decoded = charset.decode(bytes) else { return nil }
      result += decoded
      found = true
    }
    return found ? result : nil
  }
}

extension UInt8 {
  /// The value of an ASCII hexadecimal digit; `nil` for other bytes.
  var hexDigitValue: UInt8? {
    switch self {
    case 0x30...0x39: self - 0x30
    case 0x41...0x46: self - 0x41 + 10
    case 0x61...0x66: self - 0x61 + 10
    default: nil
    }
  }
}
