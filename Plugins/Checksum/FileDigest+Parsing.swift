public import DownpipeCore

extension FileDigest {
  /// Reads a digest as people write it on a command line: `sha256=ab…`.
  ///
  /// The algorithm may be written `sha256`, `SHA-256` and so on; the digits in either case.
  /// - Throws: ``DownloadError`` with `.invalidRequest` that says what is wrong: no `=`, an algorithm that cannot
  ///   be computed, something other than hexadecimal digits, too few or too many of them.
  public init(parsing text: String) throws(DownloadError) {
    let shown = "“\(text.prefix(160))”"
    guard let separator = text.firstIndex(of: "=") else {
      throw DownloadError(
        .invalidRequest,
        "\(shown) is no digest: write algorithm and hexadecimal digits as ALGORITHM=HEX, such as sha256=9f86d0…")
    }
    let algorithm = DigestAlgorithm(String(text[..<separator]))
    guard DigestComputation.supportedAlgorithms.contains(algorithm), let count = algorithm.byteCount else {
      throw DownloadError(
        .invalidRequest,
        "“\(text[..<separator].prefix(64))” is no known digest algorithm: use one of \(DigestComputation.supportedNames)"
      )
    }
    let hex = text[text.index(after: separator)...]
    if let stray = hex.first(where: { !($0.isASCII && $0.isHexDigit) }) {
      throw DownloadError(.invalidRequest, "\(shown) is no digest: “\(stray)” is no hexadecimal digit")
    }
    guard hex.count == 2 * count, let digest = FileDigest(algorithm, hex: String(hex)) else {
      throw DownloadError(
        .invalidRequest,
        "\(shown) is no digest: \(algorithm) has \(2 * count) hexadecimal digits, not \(hex.count)")
    }
    self = digest
  }
}
