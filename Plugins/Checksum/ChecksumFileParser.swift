import DownpipeCore

/// Reads the lines of a checksum file; ``ChecksumFile`` documents the forms.
struct ChecksumFileParser {
  private enum Part {
    case text, signedHead, signedText, signature, end
  }

  /// The algorithm that the name of the file states.
  private let algorithm: DigestAlgorithm?
  private(set) var entries: [ChecksumFile.Entry] = []
  private var part = Part.text
  private var number = 0
  private var hasDigestAlone = false

  init(algorithm: DigestAlgorithm?) { self.algorithm = algorithm }

  mutating func parse(_ bytes: [UInt8]) throws(DownloadError) {
    guard bytes.count <= ChecksumFile.maximumBytes else {
      throw .checksumFile("it has more than \(ChecksumFile.maximumBytes) bytes")
    }
    var rest = bytes[...]
    if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
    while !rest.isEmpty {
      let end = rest.firstIndex(of: UInt8(ascii: "\n")) ?? rest.endIndex
      var line = rest[..<end]
      rest = rest[min(end + 1, rest.endIndex)...]
      if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
      number += 1
      guard number <= ChecksumFile.maximumLines else {
        throw .checksumFile("it has more than \(ChecksumFile.maximumLines) lines")
      }
      try parse(line)
    }
    switch part {
    case .text, .end: break
    case .signedHead, .signedText, .signature: throw .checksumFile("its OpenPGP message ends early")
    }
    guard !hasDigestAlone || entries.count == 1 else {
      throw .checksumFile("it has a digest without a name beside others")
    }
  }

  // MARK: Lines

  private static let beginMessage = Array("-----BEGIN PGP SIGNED MESSAGE-----".utf8)
  private static let beginSignature = Array("-----BEGIN PGP SIGNATURE-----".utf8)
  private static let endSignature = Array("-----END PGP SIGNATURE-----".utf8)

  private mutating func parse(_ line: ArraySlice<UInt8>) throws(DownloadError) {
    let trimmed = line.trimmingBlanksAtEnd
    switch part {
    case .text where entries.isEmpty && trimmed.elementsEqual(Self.beginMessage):
      part = .signedHead
    case .text:
      try parseText(line)
    case .signedHead:
      if trimmed.isEmpty {
        part = .signedText
      } else if !line.starts(with: Array("Hash:".utf8)) {
        throw refused("is not a header of a signed message")
      }
    case .signedText where trimmed.elementsEqual(Self.beginSignature):
      part = .signature
    case .signedText:
      // Lines that begin with a dash are escaped (RFC 9580 §7.2).
      if line.starts(with: Array("- ".utf8)) {
        try parseText(line.dropFirst(2))
      } else if line.first == UInt8(ascii: "-") {
        throw refused("is not escaped, as lines of a signed message are")
      } else {
        try parseText(line)
      }
    case .signature:
      if trimmed.elementsEqual(Self.endSignature) { part = .end }
    case .end:
      guard trimmed.isEmpty else { throw refused("is behind the signed message") }
    }
  }

  private mutating func parseText(_ line: ArraySlice<UInt8>) throws(DownloadError) {
    guard let first = line.first(where: { !$0.isBlank }), first != UInt8(ascii: "#") else { return }
    guard line.count <= ChecksumFile.maximumNameBytes * 2 + 256 else { throw refused("is too long") }
    var line = line
    let isEscaped = line.first == UInt8(ascii: "\\")
    if isEscaped { line = line.dropFirst() }
    let digits = line.prefix(while: \.isHexDigit)
    let rest = line[digits.endIndex...]
    if digits.count >= 8, rest.first?.isBlank ?? true {
      try parseGNU(digits, rest, isEscaped: isEscaped)
    } else {
      try parseBSD(line, isEscaped: isEscaped)
    }
  }

  private mutating func parseGNU(
    _ digits: ArraySlice<UInt8>, _ rest: ArraySlice<UInt8>, isEscaped: Bool
  ) throws(DownloadError) {
    let byLength: DigestAlgorithm? =
      switch digits.count {
      case 32: .md5
      case 40: .sha1
      case 64: .sha256
      case 96: .sha384
      case 128: .sha512
      default: nil
      }
    guard let algorithm = algorithm ?? byLength, algorithm.byteCount == digits.count / 2,
      let digest = FileDigest(algorithm, hex: String(decoding: digits, as: UTF8.self))
    else {
      throw refused(
        "has \(digits.count) hexadecimal digits, which is no digest of "
          + (algorithm.map { "the algorithm \($0) that the name of the file states" } ?? "a known algorithm"))
    }
    guard !rest.trimmingBlanksAtEnd.isEmpty else {
      hasDigestAlone = true
      return add(nil, digest)
    }
    var name = rest.dropFirst()
    if let mark = name.first, mark == UInt8(ascii: " ") || mark == UInt8(ascii: "*") { name = name.dropFirst() }
    try add(name, digest, isEscaped: isEscaped)
  }

  private mutating func parseBSD(_ line: ArraySlice<UInt8>, isEscaped: Bool) throws(DownloadError) {
    let open = UInt8(ascii: "(")
    let (close, equals) = (UInt8(ascii: ")"), UInt8(ascii: "="))
    let value = line.lastIndex(of: equals).map { line[($0 + 1)...] }
    guard let start = line.firstIndex(of: open), start > line.startIndex, let value,
      let end = line[..<(value.startIndex - 1)].trimmingBlanksAtEnd.indices.last, line[end] == close, end > start
    else { throw refused("is not a line of a checksum file") }
    let label = line[..<start].trimmingBlanksAtEnd
    guard label.count <= 32, !label.isEmpty, label.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw refused("does not begin with the name of an algorithm")
    }
    guard let algorithm = Self.algorithm(labelled: label) else { return }
    let digits = value.drop(while: \.isBlank).trimmingBlanksAtEnd
    guard let digest = FileDigest(algorithm, hex: String(decoding: digits, as: UTF8.self)) else {
      throw refused("has no valid digest of the algorithm \(algorithm)")
    }
    try add(line[(start + 1)..<end], digest, isEscaped: isEscaped)
  }

  private mutating func add(_ name: ArraySlice<UInt8>, _ digest: FileDigest, isEscaped: Bool) throws(DownloadError) {
    guard !name.isEmpty else { throw refused("has no name") }
    guard name.count <= ChecksumFile.maximumNameBytes else { throw refused("has too long a name") }
    guard let bytes = isEscaped ? Self.unescaped(name) : Array(name) else { throw refused("has an unknown escape") }
    // Names in other encodings cannot be asked for.
    guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else { return }
    add(text, digest)
  }

  private mutating func add(_ name: String?, _ digest: FileDigest) {
    entries.append(ChecksumFile.Entry(name: name, digest: digest))
  }

  private static func unescaped(_ name: ArraySlice<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    var isEscape = false
    for byte in name {
      if isEscape {
        switch byte {
        case UInt8(ascii: "\\"): bytes.append(byte)
        case UInt8(ascii: "n"): bytes.append(0x0A)
        case UInt8(ascii: "r"): bytes.append(0x0D)
        default: return nil
        }
        isEscape = false
      } else if byte == UInt8(ascii: "\\") {
        isEscape = true
      } else {
        bytes.append(byte)
      }
    }
    return isEscape ? nil : bytes
  }

  private func refused(_ reason: String) -> DownloadError { .checksumFile("line \(number) \(reason)") }

  // MARK: Algorithms

  private static func algorithm(labelled label: ArraySlice<UInt8>) -> DigestAlgorithm? {
    var name = String(decoding: label, as: UTF8.self).lowercased()
    // OpenSSL 3 writes SHA2-256.
    if name.hasPrefix("sha2-") { name = "sha-" + name.dropFirst(5) }
    let algorithm = DigestAlgorithm(name)
    return DigestComputation.supportedAlgorithms.contains(algorithm) ? algorithm : nil
  }

  /// The names in file names, longer ones first where one contains another.
  private static let stated: [(text: String, algorithm: DigestAlgorithm?)] = [
    ("sha512_256", nil), ("sha512-256", nil), ("sha3", nil), ("blake", nil), ("b2sum", nil), ("b3sum", nil),
    ("sha512", .sha512), ("sha-512", .sha512), ("sha384", .sha384), ("sha-384", .sha384), ("sha256", .sha256),
    ("sha-256", .sha256), ("sha1", .sha1), ("sha-1", .sha1), ("md5", .md5), ("crc32c", .crc32c), ("crc32", .crc32),
  ]

  /// The algorithm that the name of a checksum file states; `nil` when it states none. Of several the last one counts: in
  /// `md5tool.zip.sha256` that is the one of the suffix.
  ///
  /// - Throws: `DownloadError` with `.invalidChecksumFile` for an algorithm that is not supported.
  static func algorithm(in name: String) throws(DownloadError) -> DigestAlgorithm? {
    let name = name.suffix(300).lowercased()
    var last: (place: String.Index, length: Int, algorithm: DigestAlgorithm?)?
    for (text, algorithm) in stated {
      guard let range = name.ranges(of: text).last else { continue }
      if let last, (last.place, last.length) >= (range.lowerBound, text.utf8.count) { continue }
      last = (range.lowerBound, text.utf8.count, algorithm)
    }
    guard let last else { return nil }
    guard let algorithm = last.algorithm else {
      throw .checksumFile(
        "its name “\(name.prefix(100).escaped)” states an algorithm that is not supported: use one of "
          + DigestComputation.supportedNames)
    }
    return algorithm
  }
}

extension UInt8 {
  fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 }
  fileprivate var isHexDigit: Bool {
    switch self {
    case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
    default: false
    }
  }
}

extension ArraySlice<UInt8> {
  fileprivate var trimmingBlanksAtEnd: ArraySlice<UInt8> {
    self[..<(lastIndex { !$0.isBlank }.map { $0 + 1 } ?? startIndex)]
  }
}
