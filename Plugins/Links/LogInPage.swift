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
    // Where there are bytes on disk `ResumePlan` compares the types. Where there are none, only a redirect that
    // leads from something else to a page tells.
    guard MediaType.isPage(reply.mediaType), let final = reply.finalURL, final != request.url else { return false }
    return !mayBePage(request.url)
  }

  /// Whether a link's own name allows for a page: no extension tells nothing, and counts as a page.
  private static func mayBePage(_ url: URL) -> Bool {
    let pages: Set<String> = ["", "html", "htm", "xhtml", "xht", "shtml", "php", "asp", "aspx", "jsp", "do", "cgi"]
    return pages.contains(url.pathExtension.lowercased())
  }
}
