import Downpipe

/// How a command shows the URLs of its downloads.
struct URLStyle: Sendable, Hashable {
  /// Whether URLs are shown as they were typed, secrets included.
  var isWhole = false

  /// The text for a field that is a URL.
  func text(_ url: String) -> String { isWhole ? url : url.redactedURL }

  /// The text for a message: with the id where a part of the URL is hidden, because other downloads may have the same text.
  func label(_ url: String, _ id: DownloadID) -> String {
    let text = text(url)
    return text == url ? text : "\(text) [\(id.rawValue)]"
  }
}
