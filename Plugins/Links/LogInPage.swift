import DownpipeCore
import Foundation

/// Tells a log-in page from a file, by what can be known without reading it.
enum LogInPage {
  /// Whether a reply is a page where the request was for something else.
  static func isLikely(_ reply: SourceReply, to request: SourceRequest) -> Bool {
    switch reply.coverage {
    case .whole, .range: break
    default: return false
    }
    guard isPage(reply.mediaType) else { return false }
    if let known = request.mediaTypeOnDisk { return !isPage(known) }
    // Nothing is on disk yet: only a redirect that leads from something else to a page tells.
    guard let final = reply.finalURL, final != request.url else { return false }
    return !mayBePage(request.url)
  }

  private static func isPage(_ mediaType: String?) -> Bool {
    guard let mediaType else { return false }
    let type = mediaType.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
    return type == "text/html" || type == "application/xhtml+xml"
  }

  /// Whether a link's own name allows for a page: no extension tells nothing, and counts as a page.
  private static func mayBePage(_ url: URL) -> Bool {
    let pages: Set<String> = ["", "html", "htm", "xhtml", "xht", "shtml", "php", "asp", "aspx", "jsp", "do", "cgi"]
    return pages.contains(url.pathExtension.lowercased())
  }
}
