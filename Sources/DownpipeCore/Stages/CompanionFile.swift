public import Foundation

/// A small file that belongs to a download: its checksum or its signature.
///
/// ```swift
/// VerifyChecksum(file: .beside(".sha256"))        // https://example.org/film.mkv.sha256
/// VerifyChecksum(file: .beside("SHA256SUMS"))     // https://example.org/SHA256SUMS
/// VerifyChecksum(file: .at(URL(string: "https://example.com/sums/SHA256SUMS")!))
/// ```
public struct CompanionFile: Sendable, Hashable {
  private enum Place: Hashable, Sendable {
    case beside(String)
    case at(URL)
  }

  private let place: Place

  /// A file in the folder of the request's URL.
  ///
  /// A text that begins with a dot is added to the name of the file, as in `film.mkv.sha256`; any other text is the name
  /// itself. The query and the fragment of the request's URL are left out: a signature in a query is one for another
  /// path. A companion that needs a query is given with ``at(_:)``. Mirrors and redirects do not matter: the companion is
  /// always fetched from beside the URL of the request.
  public static func beside(_ name: String) -> CompanionFile { CompanionFile(place: .beside(name)) }

  /// A file at a URL.
  ///
  /// Of the request's header fields it gets those that a mirror at this URL would get; see ``HeaderField/Scope``.
  public static func at(_ url: URL) -> CompanionFile { CompanionFile(place: .at(url)) }

  /// The text that was given to ``beside(_:)``; `nil` for a file at a URL.
  public var name: String? {
    if case .beside(let name) = place { name } else { nil }
  }

  /// Returns the URL of the file for the URL of a download.
  ///
  /// - Throws: ``DownloadError`` with `.invalidPipeline` for a name that is empty, `.` or `..`, or has a slash, a control
  ///   character or more than 255 bytes; with `.processing` for a URL that does not end with a file name.
  public func url(beside download: URL) throws(DownloadError) -> URL {
    let name: String
    switch place {
    case .at(let url): return url
    case .beside(let text): name = text
    }
    guard !["", ".", ".."].contains(name), name.utf8.count <= 255,
      name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\") })
    else {
      throw DownloadError(
        .invalidPipeline,
        "“\(name.prefix(100).escaped)” is not the name of a file beside the download: give a name such as SHA256SUMS, a "
          + "suffix such as .sha256, or a URL with .at")
    }
    let text = download.absoluteString
    let end = text.firstIndex { $0 == "?" || $0 == "#" } ?? text.endIndex
    let path = URLText(download).path
    let last = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
    guard path.utf8.first == UInt8(ascii: "/"), !last.isEmpty, text[..<end].hasSuffix(last) else {
      throw DownloadError(
        .processing, "\(download.redacted) does not end with a file name, so there is no file beside it: use .at")
    }
    let start = text[..<end].dropLast(name.utf8.first == UInt8(ascii: ".") ? 0 : last.count)
    guard let url = URL(string: String(start) + PercentEncoding.encode(name)) else {
      throw DownloadError(.processing, "there is no URL beside \(download.redacted): use .at")
    }
    return url
  }

  /// The file name at the end of a URL's path, percent-decoded and otherwise unchanged: it is not safe to use as a path.
  /// `nil` when the path does not begin with a slash or ends with one, or when the name is not UTF-8.
  package static func fileName(of url: URL) -> String? {
    let path = URLText(url).path
    guard path.utf8.first == UInt8(ascii: "/"),
      let last = path.split(separator: "/", omittingEmptySubsequences: false).last, !last.isEmpty,
      let bytes = PercentEncoding.decode(Array(last.utf8))
    else { return nil }
    return String(validating: bytes, as: UTF8.self)
  }
}

extension CompanionFile: CustomStringConvertible {
  /// The name beside the download, or the URL without its secrets.
  public var description: String {
    switch place {
    case .beside(let name): name
    case .at(let url): url.redacted
    }
  }
}

extension ProcessingContext {
  /// Fetches a companion of the download; see ``fetch(_:maximumBytes:isNamedByUser:)``.
  ///
  /// - Throws: Also ``DownloadError`` as ``CompanionFile/url(beside:)`` does.
  public func fetch(_ file: CompanionFile, maximumBytes: Int) async throws -> [UInt8] {
    // A server that has named the download has named what is beside it.
    try await fetch(
      try file.url(beside: request.url), maximumBytes: maximumBytes,
      isNamedByUser: file.name == nil || !request.isNamedByServer)
  }
}
