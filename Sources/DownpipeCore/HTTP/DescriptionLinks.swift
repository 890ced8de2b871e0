package import Foundation

/// The descriptions of a file that a server names in `Link` fields (RFC 8288) with the relation `describedby` (RFC 6249).
package enum DescriptionLinks {
  /// Returns the descriptions in the order of the fields, at most as many as ``DuplicateLinks/most``.
  ///
  /// Left out is what ``DuplicateLinks`` leaves out.
  /// - Parameter url: The URL that served the response. References are relative to it.
  package static func descriptions(in headers: HeaderFields, of url: URL) -> [SourceReply.Description] {
    var descriptions: [SourceReply.Description] = []
    for field in headers.values("Link").prefix(DuplicateLinks.mostFields) {
      var parser = LinkParser(field)
      while let link = parser.nextLink(), descriptions.count < DuplicateLinks.most {
        guard link.has("describedby"), let target = DuplicateLinks.target(link, of: url) else { continue }
        let type = link["type"].map(MediaType.withoutParameters)
        let description = SourceReply.Description(url: target, mediaType: type.flatMap { $0.isEmpty ? nil : $0 })
        if !descriptions.contains(description) { descriptions.append(description) }
      }
    }
    return descriptions
  }

  /// Returns the descriptions that may be used beside a URL: those of `https` only beside `https`.
  static func usable(_ descriptions: [SourceReply.Description], beside url: URL) -> [SourceReply.Description] {
    let isSecure = URLText(url).isHTTPS
    var usable: [SourceReply.Description] = []
    for description in descriptions where !isSecure || URLText(description.url).isHTTPS {
      if !usable.contains(description) { usable.append(description) }
    }
    return Array(usable.prefix(DuplicateLinks.most))
  }
}
