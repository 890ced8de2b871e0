import Crypto
import DownpipeCore

/// Marks blocks of a partial by their SHA-256, and finds out whether they are still the same.
enum BlockDigest {
  /// The bytes that a mark covers, where there are so many before it.
  static let blockSize: Int64 = 64 << 10
  /// The most that is read for a mark, which may come from a ledger that somebody has changed.
  private static let maximumSize: Int64 = 1 << 20

  /// The mark of the last block before a position.
  ///
  /// - Parameters:
  ///   - path: names the partial in an error.
  ///   - read: gives bytes of it, fewer at its end.
  /// - Throws: `DownloadError` with `.storage` when the partial ends before the position, and what `read` throws.
  static func mark(
    endingAt offset: Int64, of path: String, read: (_ offset: Int64, _ count: Int) throws -> [UInt8]
  ) throws -> BlockMark {
    let end = max(0, offset)
    let range = max(0, end - blockSize)..<end
    let bytes = try read(range.lowerBound, range.count)
    guard bytes.count == range.count else {
      throw DownloadError(
        .storage, "\(path) ends before byte \(end), up to which it was written: start the download again")
    }
    return BlockMark(range: range, digest: digest(bytes))
  }

  /// Whether the bytes are those that were marked. False for marks of another kind.
  static func matches(_ mark: BlockMark, read: (_ offset: Int64, _ count: Int) throws -> [UInt8]) throws -> Bool {
    let (start, end) = (mark.range.lowerBound, mark.range.upperBound)
    guard mark.digest.algorithm == .sha256, start >= 0, end - start <= maximumSize else { return false }
    let bytes = try read(start, Int(end - start))
    return bytes.count == Int(end - start) && digest(bytes) == mark.digest
  }

  private static func digest(_ bytes: [UInt8]) -> FileDigest {
    FileDigest(.sha256, bytes: Array(SHA256.hash(data: bytes)))
  }
}
