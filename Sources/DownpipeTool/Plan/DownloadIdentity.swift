import Crypto
import DownpipeCore
import Foundation

/// The id the tool gives a download: the same command always means the same downloads, so that running it again
/// goes on where the first run was interrupted.
///
/// It is the first 64 bits of SHA-256 over the URL as it was given, a line break, and the name given with
/// `--output`; written as 16 hexadecimal digits.
struct DownloadIdentity: Hashable, Sendable {
  /// The bits.
  let bits: UInt64

  /// The identity of a URL and a name.
  init(url: String, outputName: String?) {
    var hash = SHA256()
    hash.update(data: Array((url + "\n" + (outputName ?? "")).utf8))
    bits = hash.finalize().prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The identity behind an id; `nil` for an id that is none of the tool's.
  init?(_ id: DownloadID) {
    guard id.rawValue.utf8.count == 16 else { return nil }
    var bits: UInt64 = 0
    // Not the standard library's reading, which takes a sign and capitals: equal bits must mean equal ids.
    for byte in id.rawValue.utf8 {
      switch byte {
      case 0x30...0x39: bits = bits << 4 | UInt64(byte - 0x30)
      case 0x61...0x66: bits = bits << 4 | UInt64(byte - 0x61 + 10)
      default: return nil
      }
    }
    self.bits = bits
  }

  /// The id.
  var id: DownloadID {
    let digits = String(bits, radix: 16)
    return DownloadID(String(repeating: "0", count: 16 - digits.count) + digits)
  }
}
