/// Percent-encoding (RFC 3986 §2.1).
package enum PercentEncoding {
  /// Returns a path component in which all characters that are not unreserved (RFC 3986 §2.3) are encoded.
  static func encode(_ component: String) -> String {
    var text = ""
    for byte in component.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        text.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        text += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
      }
    }
    return text
  }

  /// Returns the decoded octets; `nil` when a percent sign is not followed by two hexadecimal digits.
  package static func decode(_ octets: [UInt8]) -> [UInt8]? {
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
