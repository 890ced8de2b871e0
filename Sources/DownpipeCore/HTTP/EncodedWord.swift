import Foundation

/// Encoded words (RFC 2047): `=?charset?B?…?=` and `=?charset?Q?…?=`.
enum EncodedWord {
  /// Returns the text of one word; `nil` when it is malformed or of an unknown charset.
  static func decode(_ word: [UInt8]) -> String? {
    let parts = word.split(separator: UInt8(ascii: "?"), maxSplits: 4, omittingEmptySubsequences: false)
    guard parts.count == 5, parts[0] == [UInt8(ascii: "=")], parts[4] == [UInt8(ascii: "=")],
      let charset = Charset(name: String(decoding: parts[1], as: UTF8.self))
    else { return nil }
    let bytes: [UInt8]?
    switch parts[2] {
    case [UInt8(ascii: "b")], [UInt8(ascii: "B")]:
      bytes = Data(base64Encoded: Data(parts[3])).map { Array($0) }
    case [UInt8(ascii: "q")], [UInt8(ascii: "Q")]:
      let octets = parts[3].map { octet -> UInt8 in
        switch octet {
        case UInt8(ascii: "_"): 0x20
        case UInt8(ascii: "="): UInt8(ascii: "%")
        default: octet
        }
      }
      // A percent sign in the word would be mistaken for an escape.
      bytes = parts[3].contains(UInt8(ascii: "%")) ? nil : PercentEncoding.decode(octets)
    default:
      bytes = nil
    }
    return bytes.flatMap { charset.decode($0) }
  }
}
