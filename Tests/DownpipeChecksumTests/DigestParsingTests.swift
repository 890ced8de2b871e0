import DownpipeCore
import HangLimit
import Testing

@testable import DownpipeChecksum

@Suite(.endsHangs)
struct DigestParsingTests {
  static let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

  @Test(
    "algorithm and digits, as people write them",
    arguments: ["sha256=" + hex, "SHA-256=" + hex.uppercased(), "sha-256=" + hex])
  func parses(_ text: String) throws {
    let digest = try FileDigest(parsing: text)
    #expect(digest.algorithm == .sha256)
    #expect(digest.hex == Self.hex)
  }

  @Test("the printed form of every supported algorithm is parsed")
  func roundTrip() throws {
    for algorithm in DigestComputation.supportedAlgorithms {
      let digest = try DigestSamples.digest(algorithm, of: DigestSamples.abc)
      #expect(try FileDigest(parsing: digest.description) == digest)
    }
  }

  /// Texts that are not a digest, and a part of the message.
  static let malformed: [(String, String)] = {
    let short = String(hex.dropLast())
    var texts: [(String, String)] = []
    texts += [("", "ALGORITHM=HEX"), (hex, "ALGORITHM=HEX"), ("sha256:\(hex)", "ALGORITHM=HEX")]
    texts += [("=\(hex)", "not a known digest algorithm"), ("blake3=\(hex)", "use one of sha-256")]
    texts += [("sha256=", "64 hexadecimal digits, not 0"), ("sha256=ab", "64 hexadecimal digits, not 2")]
    texts += [("sha256=\(hex)00", "64 hexadecimal digits, not 66"), ("sha256=\(short)", "not 63")]
    texts += [("md5=\(hex)", "32 hexadecimal digits, not 64"), ("sha256=\(short)g", "“g” is not a hexadecimal digit")]
    texts += [("sha256= \(hex)", "“ ” is not a hexadecimal digit"), ("sha256=\(hex)\n", "is not a hexadecimal digit")]
    texts += [("sha256=\(short)１", "is not a hexadecimal digit")]
    return texts
  }()

  @Test("other texts are refused with a reason", arguments: malformed)
  func refuses(_ text: String, _ reason: String) {
    let error = #expect(throws: DownloadError.self) { try FileDigest(parsing: text) }
    #expect(error?.code == .invalidRequest)
    #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
  }
}
