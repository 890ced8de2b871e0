#if LIBCURL
  import DownpipeCore
  import Foundation

  extension URL {
    /// Whether the scheme is `http` or `https`. It is asked several times for each URL, and Foundation would parse the URL
    /// each time.
    var isHTTP: Bool {
      let text = absoluteString
      guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
      return text[..<colon].caseInsensitivelyEquals("http") || text[..<colon].caseInsensitivelyEquals("https")
    }
  }

  extension String {
    /// Whether the text is a host name or an address without brackets, and nothing else of a URL.
    var isHost: Bool {
      !isEmpty && utf8.count <= 253 && utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !Self.forbidden.contains($0) }
    }

    private static let forbidden = Array(" \"#%/<>?@\\^`{|}[],".utf8)
  }
#endif
