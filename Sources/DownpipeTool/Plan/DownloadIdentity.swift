import DownpipeCore
import DownpipeDigest
import Foundation

/// The id of a download of the tool. It depends on the URL and the name only, so that the same command means the same
/// downloads, and resumes them when it is run again.
///
/// It is the first 64 bits of SHA-256 over the URL as it was typed, a line break, and the name given with `--output`,
/// written as 16 hexadecimal digits. For a file of a Metalink document, it is the hash of the word “metalink”, the
/// URL of the document as it was typed or its path, and the name of the file.
struct DownloadIdentity: Hashable, Sendable {
  let bits: UInt64

  init(url: String, outputName: String?) { self.init(hashing: url + "\n" + (outputName ?? "")) }

  /// The id of a file of a Metalink document. It does not depend on the URLs of the file, which change with the mirrors.
  init(document: String, file: String) { self.init(hashing: "metalink\n" + document + "\n" + file) }

  /// The id of a file of a Metalink document that is not downloaded, by its place among those.
  init(document: String, leftOut place: Int) { self.init(hashing: "left out\n\(document)\n\(place)") }

  private init(hashing text: String) {
    bits = sha256(Array(text.utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// `nil` for an id that another program has made.
  init?(_ id: DownloadID) {
    guard id.rawValue.utf8.count == 16 else { return nil }
    var bits: UInt64 = 0
    // The standard library also reads a sign and capitals; equal bits must mean equal ids.
    for byte in id.rawValue.utf8 {
      switch byte {
      case 0x30...0x39: bits = bits << 4 | UInt64(byte - 0x30)
      case 0x61...0x66: bits = bits << 4 | UInt64(byte - 0x61 + 10)
      default: return nil
      }
    }
    self.bits = bits
  }

  var id: DownloadID {
    let digits = String(bits, radix: 16)
    return DownloadID(String(repeating: "0", count: 16 - digits.count) + digits)
  }
}
