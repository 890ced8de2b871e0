package import DownpipeCore
import Foundation

extension String {
  /// The text for logs and traces: the secrets of URLs in it are hidden, and it has no control characters, so that it
  /// stays on one line.
  package var safeText: String {
    let text = redactingURLs
    // Most texts need no change. U+2028 and U+2029, which end a line, begin with the same byte in UTF-8.
    guard text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f || $0 == 0xc2 || $0 == 0xe2 }) else { return text }
    var safe = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .lineSeparator, .paragraphSeparator:
        safe.append(contentsOf: scalar.escaped(asASCII: true).unicodeScalars)
      default: safe.append(scalar)
      }
    }
    return String(safe)
  }
}

extension DownloadID {
  /// The id for logs and traces. An id may be a URL.
  package var safeText: String { rawValue.safeText }
}

extension DownloadRequest {
  /// The URL for logs and traces, without secrets.
  package var safeURL: String { url.redacted.safeText }
}
