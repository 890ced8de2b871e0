internal import Foundation

/// The digests of all pieces of a file, with which a damaged file is repaired by fetching its wrong pieces only.
///
/// ```swift
/// var film = try DownloadRequest("https://example.org/film.mkv")
/// film.pieces = PieceDigests(.sha256, length: 1 << 20, bytes: bytes)
/// ```
/// A Metalink document has them, and `PieceDigests.of(file:algorithm:length:)` of `DownpipeChecksum` computes them. They are digests of the whole
/// file as it is downloaded, like ``DownloadRequest/expectedDigests``, and prove it as well as these do.
///
/// It is a value with one array, so that copies of a request cost nothing.
public struct PieceDigests: Sendable, Hashable {
  /// The most pieces: 65,536. A ledger keeps the digests with the request.
  public static let maximumCount = 1 << 16
  /// The most bytes of a piece: 64 MiB.
  public static let maximumLength: Int64 = 64 << 20

  /// The algorithm of the digests.
  public let algorithm: DigestAlgorithm
  /// The length of each piece in bytes. The last one may be shorter.
  public let length: Int64
  /// The digests of the pieces in their order, one after the other.
  public let bytes: [UInt8]

  /// Creates the digests of a file.
  ///
  /// - Returns: `nil` for an algorithm whose digests have no known length, for digests of another algorithm or length, and
  ///   for more than the limits.
  public init?(_ algorithm: DigestAlgorithm, length: Int64, digests: [FileDigest]) {
    guard digests.allSatisfy({ $0.algorithm == algorithm && $0.bytes.count == algorithm.byteCount }) else { return nil }
    self.init(algorithm, length: length, bytes: digests.flatMap(\.bytes))
  }

  /// Creates the digests of a file from their bytes, one digest after the other; `nil` as for the other initializer.
  public init?(_ algorithm: DigestAlgorithm, length: Int64, bytes: [UInt8]) {
    guard let size = algorithm.byteCount, size > 0, bytes.count.isMultiple(of: size), !bytes.isEmpty,
      bytes.count / size <= Self.maximumCount, (1...Self.maximumLength).contains(length)
    else { return nil }
    self.algorithm = algorithm
    self.length = length
    self.bytes = bytes
  }

  /// The number of pieces.
  public var count: Int { bytes.count / (algorithm.byteCount ?? 1) }

  /// Whether the pieces are those of a file of a size.
  public func fit(_ size: Int64) -> Bool { size > 0 && Int64(count) == (size - 1) / length + 1 }

  /// The digest of a piece, counted from 0.
  public func digest(at index: Int) -> FileDigest {
    let size = algorithm.byteCount ?? 1
    return FileDigest(algorithm, bytes: Array(bytes[index * size..<(index + 1) * size]))
  }

  /// The offsets of a piece, counted from 0, in a file of a size.
  public func range(at index: Int, of size: Int64) -> ByteRange {
    let start = Int64(index) * length
    return start..<max(start, min(size, start + length))
  }
}

extension PieceDigests: Codable {
  private enum CodingKeys: String, CodingKey {
    case algorithm, length, digests
  }

  /// Decodes the digests; they are checked as by the initializers.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let pieces = PieceDigests(
      try container.decode(DigestAlgorithm.self, forKey: .algorithm),
      length: try container.decode(Int64.self, forKey: .length),
      bytes: Array(try container.decode(Data.self, forKey: .digests)))
    guard let pieces else {
      throw DecodingError.dataCorruptedError(
        forKey: .digests, in: container, debugDescription: "these are no digests of pieces")
    }
    self = pieces
  }

  /// Encodes the algorithm, the length, and the digests one after the other, as base64 in JSON.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(algorithm, forKey: .algorithm)
    try container.encode(length, forKey: .length)
    try container.encode(Data(bytes), forKey: .digests)
  }
}
