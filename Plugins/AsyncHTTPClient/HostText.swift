#if AsyncHTTPClient
  import DownpipeCore
  import Foundation

  /// Checks URLs and host names.
  enum HostText {
    /// Whether the scheme is `http` or `https`.
    static func isHTTP(_ url: URL) -> Bool {
      // This is called several times for each URL, and Foundation would parse the URL each time.
      let text = url.absoluteString
      return ["http:", "https:"].contains { text.prefix($0.count).caseInsensitivelyEquals($0) }
    }

    /// Whether a host can be used unchanged in a `Host` field, a name look-up and a SOCKS request.
    static func isPlainHost(_ host: String) -> Bool {
      !host.isEmpty && host.utf8.count <= 253
        && host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !forbidden.contains($0) }
    }

    private static let forbidden = Array(" \"#%/<>?@\\^`{|}".utf8)
  }
#endif
