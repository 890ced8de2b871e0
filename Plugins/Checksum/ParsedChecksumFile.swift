import DownpipeCore
import Synchronization

/// The checksum file that a step has parsed last: thousands of downloads may be in one file, which is parsed once for them.
///
/// It has the bytes of one file, of at most ``ChecksumFile/maximumBytes``, and their parsed form. Files that are parsed
/// quickly, such as one for each download, are not kept.
final class ParsedChecksumFile: Sendable {
  /// The fewest bytes of a file that is kept.
  static let fewestBytes = 4096

  private struct Parsed: Sendable {
    let bytes: [UInt8]
    let name: String
    let file: ChecksumFile
  }

  private let latest = Mutex<Parsed?>(nil)

  /// Returns the parsed form of a file.
  ///
  /// - Throws: As ``ChecksumFile/init(parsing:named:)`` does.
  func file(of bytes: [UInt8], named name: String) throws(DownloadError) -> ChecksumFile {
    guard bytes.count >= Self.fewestBytes else { return try ChecksumFile(parsing: bytes, named: name) }
    let known = latest.withLock { $0 }
    if let known, known.name == name, known.bytes == bytes { return known.file }
    let file = try ChecksumFile(parsing: bytes, named: name)
    latest.withLock { $0 = Parsed(bytes: bytes, name: name, file: file) }
    return file
  }
}
