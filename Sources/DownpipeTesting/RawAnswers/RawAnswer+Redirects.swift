import DownpipeCore

extension RawAnswer {
  /// A redirect whose target has the file.
  /// - Parameter target: The request target below the name of the answer.
  private static func redirect(
    _ name: String, _ summary: String, _ location: String, target: String = "film",
    _ expectation: Expectation = .file(text)
  ) -> RawAnswer {
    var result = RawAnswer(
      name, summary, "HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n", expectation)
    result.further[target] = ok("Content-Length: 12\r\n")
    return result
  }

  /// Redirects (RFC 9110 §10.2.2, and the URL standard of WHATWG).
  static let redirects = [
    redirect("redirect", "a Location with a path", "/redirect/film"),
    redirect("redirect-relative", "a relative Location", "film"),
    redirect("redirect-to-the-host", "a Location without a scheme", "//@HOST@/redirect-to-the-host/film"),
    redirect(
      "redirect-three-slashes", "a Location with three slashes after the scheme",
      "http:///@HOST@/redirect-three-slashes/film"),
    redirect("redirect-with-spaces", "spaces around the Location", "  film \t"),
    redirect("redirect-fragment", "a Location with a fragment", "film#part"),
    redirect("redirect-latin-1", "a Location in Latin-1: its bytes are requested", "caf\u{E9}", target: "caf%E9"),
    redirect("redirect-utf-8", "a Location in UTF-8", "caf\u{C3}\u{A9}", target: "caf%C3%A9"),
    redirect("redirect-escape", "escapes in a Location stay as they are", "%41%e9%20%2F", target: "%41%e9%20%2F"),
    redirect("redirect-mixed", "a Location with an escape and a character", "\u{C3}\u{A9}%20x", target: "%C3%A9%20x"),
    redirect("redirect-brackets", "a Location with brackets and an escape", "[1]%20x", target: "%5B1%5D%20x"),
    redirect("redirect-space", "a Location with a space and an escape", "?q=a b%20c", target: "start?q=a%20b%20c"),
    redirect("redirect-twice-the-same", "the same Location twice", "film\r\nLocation: film"),
    redirect("redirects-differ", "different Locations", "film\r\nLocation: other", .invalid),
    redirect(
      "redirect-without-location", "the status 302 without a Location", "\r\nX: y", .status(302)),
    redirect(
      "redirect-loop", "a redirect to itself", start, target: "none", .refused([.tooManyRedirects])),
    redirect(
      "redirect-to-another-scheme", "a redirect to a file of this machine", "file:///etc/hostname",
      .refused([.unsupportedURL, .invalidRequest, .invalidResponse])),
  ]
}
