import DownpipeCore

/// Computes the digests of the pieces of a file, whose bytes it takes in order.
struct PieceComputation: Sendable {
  let algorithm: DigestAlgorithm
  let length: Int64
  private let start: DigestComputation
  private var current: DigestComputation
  /// The number of bytes in the current piece.
  private var count: Int64 = 0
  private var finished: [FileDigest] = []
  private let most: Int

  /// - Parameter most: The number of pieces that the file should have. Those of a longer file are not computed.
  /// - Throws: ``DownloadError`` with `.invalidRequest` for an algorithm that is not supported.
  init(_ algorithm: DigestAlgorithm, length: Int64, atMost most: Int) throws(DownloadError) {
    self.most = most
    self.algorithm = algorithm
    self.length = length
    start = try DigestComputation(algorithm)
    current = start
  }

  mutating func update(_ bytes: RawSpan) {
    var bytes = bytes
    while !bytes.isEmpty, finished.count <= most {
      let part = bytes.extracting(first: Int(min(Int64(bytes.byteCount), length - count)))
      bytes = bytes.extracting(droppingFirst: part.byteCount)
      current.update(part)
      count += Int64(part.byteCount)
      if count == length {
        finished.append(current.finalize())
        current = start
        count = 0
      }
    }
  }

  /// The digests of the pieces so far, with that of the last, shorter one: at most one more than the file should have.
  var digests: [FileDigest] { count > 0 ? finished + [current.finalize()] : finished }
}

extension PieceDigests {
  /// The pieces of a file whose digests are others, by their positions.
  func wrongPieces(among digests: [FileDigest]) -> [Int] {
    (0..<count).filter { $0 >= digests.count || digest(at: $0) != digests[$0] }
  }
}
