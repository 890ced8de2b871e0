package import Foundation

extension URL {
  /// Whether the scheme is `http` or `https`. It is asked several times for each URL, and Foundation would parse the URL
  /// each time.
  package var isHTTP: Bool { absoluteString.hasHTTPScheme }
}

extension StringProtocol {
  /// Whether the text begins as an `http` or `https` URL does.
  package var hasHTTPScheme: Bool { utf8.firstIndex(of: UInt8(ascii: ":")).map { self[..<$0].isHTTPScheme } ?? false }

  /// Whether the text is an `http` or `https` URL with a third slash in place of its host.
  var hasEmptyHost: Bool {
    let text = drop { $0 == " " || $0.isNewline || $0 == "\t" }
    guard text.hasHTTPScheme, let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
    return text.utf8[colon...].dropFirst().prefix(3).elementsEqual("///".utf8)
  }

  /// Whether the text is the scheme `http` or `https`.
  package var isHTTPScheme: Bool { caseInsensitivelyEquals("http") || caseInsensitivelyEquals("https") }

  /// Whether the text is a host name or an address without brackets, and nothing else of a URL: it can be used unchanged
  /// in a `Host` field, a name look-up and a SOCKS request.
  package var isHost: Bool {
    !isEmpty && utf8.count <= 253 && utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !forbiddenInHosts.contains($0) }
  }
}

private let forbiddenInHosts = Array(" \"#%/<>?@\\^`{|}[],".utf8)
