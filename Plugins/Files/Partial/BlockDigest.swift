import CZlib
import DownpipeCore

/// Marks of blocks: the CRC-32 of a run of bytes, by which damage to a partial is detected.
///
/// The marks detect accidents (a crash, a failing disk, another program that writes to the file), not attacks, so a
/// checksum is enough and no cryptographic library is needed.
enum BlockDigest {
  /// The length of a block; the first one may be shorter.
  static let blockSize: Int64 = 64 << 10
  /// The longest block that is read. A damaged ledger can contain any range.
  private static let maximumSize: Int64 = 1 << 20

  /// The mark of the block that ends at `offset`.
  ///
  /// - Parameters:
  ///   - start: The lowest offset at which the block may begin.
  ///   - path: The partial, for error messages.
  ///   - read: Returns bytes of the partial, fewer at its end.
  /// - Throws: `DownloadError` with `.storage` when the partial ends before the offset; errors of `read`.
  static func mark(
    endingAt offset: Int64, from start: Int64, of path: String, read: (_ offset: Int64, _ count: Int) throws -> [UInt8]
  ) throws -> BlockMark {
    let end = max(0, offset)
    let range = min(end, max(0, start, end - blockSize))..<end
    let bytes = try read(range.lowerBound, range.count)
    guard bytes.count == range.count else {
      throw DownloadError(
        .storage, "\(path) is shorter than the \(end) bytes written to it: start the download again")
    }
    return BlockMark(range: range, digest: digest(bytes))
  }

  /// Whether the bytes are those that were marked.
  ///
  /// A mark with SHA-256 and a valid range counts as matching without a check: earlier versions wrote such marks. A mark
  /// with any other algorithm or range comes from a damaged ledger and does not match.
  static func matches(_ mark: BlockMark, read: (_ offset: Int64, _ count: Int) throws -> [UInt8]) throws -> Bool {
    let (start, end) = (mark.range.lowerBound, mark.range.upperBound)
    guard start >= 0, end - start <= maximumSize else { return false }
    if mark.digest.algorithm == .sha256 { return true }
    guard mark.digest.algorithm == .crc32 else { return false }
    let bytes = try read(start, Int(end - start))
    return bytes.count == Int(end - start) && digest(bytes) == mark.digest
  }

  private static func digest(_ bytes: [UInt8]) -> FileDigest {
    let sum = UInt32(truncatingIfNeeded: crc32(0, bytes, UInt32(bytes.count)))
    return FileDigest(.crc32, bytes: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: sum >> $0) })
  }
}
