public import DownpipeCore

/// The digests in a checksum file, such as `SHA256SUMS` or `film.mkv.sha256`.
///
/// ```swift
/// let sums = try ChecksumFile(parsing: bytes, named: "SHA256SUMS")
/// let digest = try sums.digest(for: "film.mkv")
/// ```
///
/// **Forms.** Each line has one of these forms; lines may end with CR LF:
/// - GNU: hexadecimal digits, a blank, a blank or `*`, and the name (`sha256sum`, `md5sum`, `shasum`). The second of the
///   two characters may be missing, as from `md5 -r`. A line that begins with `\` has a name with the escapes `\\`, `\n`
///   and `\r`.
/// - BSD: `SHA256 (name) = digits` (`sha256sum --tag`, `openssl dgst`); the blanks around the name may be missing. Lines
///   of unknown algorithms, such as `SIZE (name) = 5`, are skipped.
/// - One line of hexadecimal digits alone, which then applies to every name.
///
/// Empty lines and lines that begin with `#` are skipped. A message with a signature of OpenPGP in clear text (RFC 9580
/// §7) is unwrapped, and **its signature is not verified**; text outside of the signed part is refused. Any other line is
/// refused, because it may be a page of a log-in or an error, and so are two different digests of one algorithm for one
/// name.
///
/// **Algorithms.** A digest in GNU form has the algorithm that the name of the checksum file states, such as `.sha256`,
/// and a file with digests of another length is refused. If the name states none, the length decides: MD5, SHA-1,
/// SHA-256, SHA-384 or SHA-512.
///
/// **Limits.** ``maximumBytes``, ``maximumLines`` and ``maximumNameBytes``. Parsing is linear in time and memory.
public struct ChecksumFile: Sendable, Hashable {
  /// The most bytes of a file: 4 MiB.
  public static let maximumBytes = 4 << 20
  /// The most lines of a file: 100,000.
  public static let maximumLines = 100_000
  /// The most bytes of a name: 4,096.
  public static let maximumNameBytes = 4096

  /// A digest in the file.
  public struct Entry: Sendable, Hashable {
    /// The name as it is written, after its escapes; `nil` for a digest alone.
    public let name: String?
    /// The digest.
    public let digest: FileDigest
  }

  /// The digests in the order of the lines, without repetitions.
  public let entries: [Entry]
  private let digestsByName: [String: [FileDigest]]

  /// Parses a file.
  ///
  /// - Parameters:
  ///   - bytes: The bytes of the file.
  ///   - name: The name of the checksum file or its suffix, such as `SHA256SUMS` or `.sha256`, which may state the
  ///     algorithm; `nil` when it is not known.
  /// - Throws: `DownloadError` with `.invalidChecksumFile`, whose message names the line.
  public init(parsing bytes: [UInt8], named name: String? = nil) throws(DownloadError) {
    var parser = ChecksumFileParser(algorithm: try ChecksumFileParser.algorithm(in: name ?? ""))
    try parser.parse(bytes)
    var byName: [String: [FileDigest]] = [:]
    var entries: [Entry] = []
    for entry in parser.entries {
      let key = Self.key(entry.name ?? "")
      let known = byName[key, default: []].first { $0.algorithm == entry.digest.algorithm }
      if known == entry.digest { continue }
      guard known == nil else {
        throw .checksumFile(
          "it has two different digests of the algorithm \(entry.digest.algorithm) for “\((entry.name ?? "").prefix(100).escaped)”"
        )
      }
      byName[key, default: []].append(entry.digest)
      entries.append(entry)
    }
    guard !entries.isEmpty else { throw .checksumFile("it has no digest of a supported algorithm") }
    self.entries = entries
    digestsByName = byName
  }

  /// Returns the digests for a file, the strongest first; empty when there is none.
  ///
  /// The name must be that of an entry, where a leading `./` does not count. If all entries are for one name, the last
  /// component of that name is enough, because such a file is published beside the one that it is for. A file with one
  /// digest alone, or with the name `-` of standard input alone, is for every name.
  public func digests(for name: String) -> [FileDigest] {
    var found = digestsByName[Self.key(name)]
    if found == nil, digestsByName.count == 1, let (only, digests) = digestsByName.first {
      let isForAll = only.isEmpty || only == "-"
      if isForAll || only.split(separator: "/").last.map(String.init) == name { found = digests }
    }
    return (found ?? []).sorted { Self.strength($0.algorithm) > Self.strength($1.algorithm) }
  }

  /// Returns the strongest digest for a file; `nil` when there is none. See ``digests(for:)``.
  public func digest(for name: String) -> FileDigest? { digests(for: name).first }

  private static func key(_ name: String) -> String {
    var name = name[...]
    while name.hasPrefix("./") { name = name.dropFirst(2).drop { $0 == "/" } }
    return String(name)
  }

  private static func strength(_ algorithm: DigestAlgorithm) -> Int {
    DigestAlgorithm.byStrength.firstIndex(of: algorithm) ?? -1
  }
}

extension DownloadError.Code {
  /// A checksum file cannot be read: it is damaged, contradicts itself, or is another kind of file.
  public static let invalidChecksumFile = DownloadError.Code("invalidChecksumFile")
  /// There is no checksum for the download: no checksum file, or no entry in it.
  public static let noChecksum = DownloadError.Code("noChecksum")
  /// No digest was compared with the bytes of the file.
  public static let unverified = DownloadError.Code("unverified")
}

extension DownloadError {
  static func checksumFile(_ reason: String) -> DownloadError {
    DownloadError(.invalidChecksumFile, "the checksum file cannot be used: \(reason)")
  }
}
