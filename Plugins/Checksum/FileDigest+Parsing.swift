public import DownpipeCore

extension FileDigest {
  /// Parses a digest in the form for command lines, such as `sha256=ab…`.
  ///
  /// The algorithm can be written `sha256`, `SHA-256` and so on, and the digits in upper or lower case.
  /// - Throws: `DownloadError` with `.invalidRequest`, whose message names the error: no `=`, an unsupported algorithm,
  ///   other characters than hexadecimal digits, or a wrong number of digits.
  public init(parsing text: String) throws(DownloadError) {
    let shown = "“\(text.prefix(160))”"
    guard let separator = text.firstIndex(of: "=") else {
      throw DownloadError(
        .invalidRequest,
        "\(shown) is not a digest: write the algorithm and hexadecimal digits as ALGORITHM=HEX, such as sha256=9f86d0…")
    }
    let algorithm = DigestAlgorithm(String(text[..<separator]))
    guard DigestComputation.supportedAlgorithms.contains(algorithm), let count = algorithm.byteCount else {
      throw DownloadError(
        .invalidRequest,
        "“\(text[..<separator].prefix(64))” is not a known digest algorithm: use one of \(DigestComputation.supportedNames)"
      )
    }
    let hex = text[text.index(after: separator)...]
    if let stray = hex.first(where: { !($0.isASCII && $0.isHexDigit) }) {
      throw DownloadError(.invalidRequest, "\(shown) is not a digest: “\(stray)” is not a hexadecimal digit")
    }
    guard hex.count == 2 * count, let digest = FileDigest(algorithm, hex: String(hex)) else {
      throw DownloadError(
        .invalidRequest,
        "\(shown) is not a digest: \(algorithm) has \(2 * count) hexadecimal digits, not \(hex.count)")
    }
    self = digest
  }
}
