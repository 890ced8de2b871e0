import DownpipeCore
import Foundation

/// Detection of log-in pages sent in place of a file, without reading the body.
enum LogInPage {
  /// Whether a reply is probably a log-in page in place of the requested file.
  static func isLikely(_ reply: SourceReply, to request: SourceRequest) -> Bool {
    switch reply.coverage {
    case .whole, .range: break
    default: return false
    }
    // If there are stored bytes, `ResumePlan` compares the media types. Without them, the only sign is a redirect from
    // a link to another kind of file to a page.
    guard MediaType.isPage(reply.mediaType), let final = reply.finalURL, final != request.url else { return false }
    return !mayBePage(request.url)
  }

  /// Whether the name in a URL may denote a page. A URL without an extension may.
  private static func mayBePage(_ url: URL) -> Bool {
    let pages: Set<String> = ["", "html", "htm", "xhtml", "xht", "shtml", "php", "asp", "aspx", "jsp", "do", "cgi"]
    // Foundation finds no extension in a path with escapes that are not UTF-8.
    let name = URLText(url).path.split(separator: "/").last ?? ""
    return pages.contains(name.lastIndex(of: ".").map { name[$0...].dropFirst().lowercased() } ?? "")
  }
}
