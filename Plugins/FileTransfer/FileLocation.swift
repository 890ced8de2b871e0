#if LIBCURL
  import DownpipeCore
  import Foundation

  /// The schemes of the source.
  enum FileScheme: String {
    case ftp, ftps, sftp

    init?(_ url: URL) { self.init(rawValue: URLText(url).scheme.lowercased()) }
  }

  /// The place of a file: a URL, taken apart and checked.
  struct FileLocation: Sendable {
    let scheme: FileScheme
    let origin: Origin
    /// The URL for libcurl, without user information.
    let wireText: String
    /// The last component of the path, decoded; `nil` when it is not UTF-8.
    let name: String?
    /// The log-in of the URL.
    let logIn: FileLogIn?

    /// - Throws: `DownloadError` with `.unsupportedURL` for a folder, another scheme, or a type other than binary;
    ///   `.invalidRequest` for a host, a path or a name that cannot be sent.
    init(_ url: URL) throws(DownloadError) {
      let parts = URLText(url)
      guard let scheme = FileScheme(url) else {
        throw DownloadError(.unsupportedURL, "“\(parts.scheme.prefix(32).escaped)” is not ftp, ftps or sftp")
      }
      guard let origin = Origin(url), !origin.host.isEmpty, origin.host.utf8.count <= 253, let port = origin.port,
        (1...65_535).contains(port)
      else {
        throw DownloadError(
          .invalidRequest, "the host or the port of the URL is not valid: write it as \(scheme.rawValue)://host/path")
      }
      var path = String(parts.path) + (parts.query.map { "?\($0)" } ?? "")
      if scheme != .sftp { path = try Self.withoutType(path) }
      guard let octets = PercentEncoding.decode(Array(path.utf8)) else {
        throw DownloadError(.invalidRequest, "the path of the URL has a percent sign that begins no escape")
      }
      try Self.check(octets, scheme)
      self.scheme = scheme
      self.origin = origin
      let start = octets.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
      name = String(validating: octets[start...], as: UTF8.self)
      // libcurl gives both characters a meaning of its own.
      path = path.replacing("?", with: "%3F").replacing(";", with: "%3B")
      wireText = "\(scheme.rawValue)://\(origin.host):\(port)\(path)"
      logIn = try parts.userInfo.flatMap { text throws(DownloadError) in try FileLogIn(userInfo: text) }
    }

    /// Removes `;type=i` (RFC 1738 §3.2.2). Other types are not the bytes of a file.
    private static func withoutType(_ path: String) throws(DownloadError) -> String {
      guard let mark = path.lastIndex(of: ";"), path[mark...].dropFirst().prefix(5).caseInsensitivelyEquals("type=")
      else { return path }
      switch path[mark...].dropFirst(6).lowercased() {
      case "i": return String(path[..<mark])
      case "a", "d":
        throw DownloadError(
          .unsupportedURL, "the URL asks for text or for a list (;type=): only files are fetched, as they are (;type=i)"
        )
      default: return path
      }
    }

    private static func check(_ path: [UInt8], _ scheme: FileScheme) throws(DownloadError) {
      guard !path.contains(0) else {
        throw DownloadError(.invalidRequest, "the path of the URL has a NUL character")
      }
      // They would end the command and begin another one.
      guard scheme == .sftp || !path.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
        throw DownloadError(.invalidRequest, "the path of the URL has control characters, which FTP cannot send")
      }
      guard let last = path.last, last != UInt8(ascii: "/") else {
        throw DownloadError(.unsupportedURL, "the URL is that of a folder: use the URL of a file")
      }
    }
  }

  /// A user name, with or without a password.
  struct FileLogIn: Sendable, Equatable {
    let user: String
    var password: String?

    /// - Throws: `DownloadError` with `.invalidRequest` for control characters, which would begin another command.
    init(user: String, password: String?) throws(DownloadError) {
      guard !(user + (password ?? "")).utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
        throw DownloadError(.invalidRequest, "the user name or the password has control characters")
      }
      self.user = user
      self.password = password
    }

    /// Reads the user information of a URL; `nil` when it has no name.
    init?(userInfo text: Substring) throws(DownloadError) {
      let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      let user = Self.decoded(parts[0])
      guard !user.isEmpty else { return nil }
      try self.init(user: user, password: parts.count > 1 ? Self.decoded(parts[1]) : nil)
    }

    /// Reads an `Authorization` field; `nil` for another scheme than Basic (RFC 7617).
    init?(authorization field: String?) throws(DownloadError) {
      guard let field, field.prefix(6).caseInsensitivelyEquals("Basic "),
        let bytes = Data(base64Encoded: String(field.dropFirst(6).drop { $0 == " " })),
        let text = String(validating: bytes, as: UTF8.self), let colon = text.firstIndex(of: ":"),
        colon > text.startIndex
      else { return nil }
      try self.init(user: String(text[..<colon]), password: String(text[text.index(after: colon)...]))
    }

    private static func decoded(_ text: Substring) -> String {
      guard let bytes = PercentEncoding.decode(Array(text.utf8)) else { return String(text) }
      return String(validating: bytes, as: UTF8.self)
        ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
  }
#endif
