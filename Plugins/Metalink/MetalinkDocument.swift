public import DownpipeCore
public import Foundation

/// A Metalink document: files with their sizes, digests and mirrors, of version 4 (RFC 5854) or 3.
///
/// ```swift
/// let document = try MetalinkDocument(parsing: bytes)
/// for request in try document.requests() { try await downloader.add(request) }
/// ```
///
/// **What is refused.** A document with more than the limits, with a document type declaration (which can define
/// entities), in another encoding than UTF-8, ASCII or Latin-1, with another root element, or that is not well-formed XML.
///
/// **Which files are refused.** A file without a name or URL, one whose name is not a safe relative path, or is that of an
/// earlier file, and one whose checks cannot be read: a hash without a type, of another length than its type has, or with
/// other characters than hexadecimal digits; two different hashes of one type; a size or a length of pieces that is no number
/// of bytes; hashes of pieces that are not in their order, or whose number does not fit the size. ``skipped`` has these files
/// with the reasons, and the other files of the document are in ``files``.
///
/// **What is ignored.** Elements and attributes that are unknown (RFC 5854 §5), URLs that cannot be parsed, and hashes of
/// unknown algorithms; see ``File/unknownAlgorithms``.
///
/// **Limits.** ``maximumBytes``, ``maximumFiles``, ``maximumURLs`` and ``maximumPieces`` for each file, a depth of 32
/// elements, and 64 KiB of text in an element. External entities are never loaded.
public struct MetalinkDocument: Sendable, Hashable {
  /// The most bytes of a document: 16 MiB.
  public static let maximumBytes = 16 << 20
  /// The most files of a document: 10,000.
  public static let maximumFiles = 10_000
  /// The most URLs of a file, with those of torrents and the like: 1,000.
  public static let maximumURLs = 1000
  /// The most piece digests of a file: 262,144.
  public static let maximumPieces = 1 << 18

  /// A version of the format.
  public enum Version: Int, Sendable, Hashable {
    /// Version 3, from metalinker.org.
    case three = 3
    /// Version 4, of RFC 5854.
    case four = 4
  }

  /// A file of the document.
  public struct File: Sendable, Hashable {
    /// The name: a relative path, separated by `/`, that stays in its folder.
    public let name: String
    /// The size in bytes; `nil` when it is not stated.
    public let size: Int64?
    /// The digests of the whole file in algorithms whose length is known.
    public let digests: [FileDigest]
    /// The digests of pieces of the file. Their number fits ``size``, if that is stated and not zero.
    public let pieces: [Pieces]
    /// The algorithms of hashes that are left out because the length of their digests is not known, such as `sha-224`.
    public let unknownAlgorithms: [String]
    /// The URLs of the file, the best first.
    public let mirrors: [Mirror]
    /// The URLs of descriptions of the file, such as torrents, the best first.
    public let metaURLs: [MetaURL]
  }

  /// The digests of all pieces of a file.
  public struct Pieces: Sendable, Hashable {
    /// The algorithm of the digests.
    public let algorithm: DigestAlgorithm
    /// The length of each piece in bytes. The last one may be shorter.
    public let length: Int64
    /// The digests in the order of the pieces. Their number fits the size of the file, if the document states it.
    public let digests: [FileDigest]
  }

  /// A URL of a file.
  public struct Mirror: Sendable, Hashable {
    /// The URL.
    public let url: URL
    /// The priority of version 4, from 1, the best, to 999,999; `nil` when there is none.
    public let priority: Int?
    /// The preference of version 3, where a higher one is better, usually from 0 to 100; `nil` when there is none.
    public let preference: Int?
    /// The country as a code of two letters (ISO 3166-1) in lower case; `nil` when there is none.
    public let location: String?
  }

  /// A URL of a description of a file.
  public struct MetaURL: Sendable, Hashable {
    /// The URL.
    public let url: URL
    /// The media type, or `torrent`; `nil` when there is none.
    public let mediaType: String?
    /// The priority; see ``Mirror/priority``.
    public let priority: Int?
    /// The preference; see ``Mirror/preference``.
    public let preference: Int?
  }

  /// A file of the document that is refused.
  public struct SkippedFile: Sendable, Hashable {
    /// The name as it is written; `nil` when there is none.
    public let name: String?
    /// Why it is refused.
    public let reason: String
  }

  /// The version of the format.
  public let version: Version
  /// The URL at which the document was published; `nil` when it does not say. It is not verified.
  public let origin: URL?
  /// Whether newer versions of the document are published at ``origin``.
  public let isDynamic: Bool
  /// The files in the order of the document.
  public let files: [File]
  /// The files that are refused, in the order of the document.
  public let skipped: [SkippedFile]

  /// Parses a document.
  ///
  /// - Throws: `DownloadError` with `.invalidMetalink`; `.tooLarge` for more than a limit.
  public init(parsing bytes: [UInt8]) throws(DownloadError) {
    var reader = MetalinkReader()
    let content = try reader.read(bytes)
    version = content.version
    origin = content.origin
    isDynamic = content.isDynamic
    files = content.files
    skipped = content.skipped
  }
}

extension DownloadError.Code {
  /// A Metalink document cannot be read.
  public static let invalidMetalink = DownloadError.Code("invalidMetalink")
}
