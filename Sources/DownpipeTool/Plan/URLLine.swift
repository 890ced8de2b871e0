/// What a line of a list says: the URL of a file and, separated by tabs, other URLs of the same file, as in aria2's lists.
///
/// The first URL alone is the identity of the download.
struct URLLine: Hashable, Sendable {
  let url: String
  let mirrors: [String]

  init(_ text: String) {
    // What is typed stays as it is.
    guard text.utf8.contains(0x09) else {
      (url, mirrors) = (text, [])
      return
    }
    let parts = text.split(separator: "\t").map { $0.drop { $0 == " " } }
    url = parts.first.map(Self.trimmed) ?? text
    mirrors = parts.dropFirst().map(Self.trimmed).filter { !$0.isEmpty }
  }

  private static func trimmed(_ part: Substring) -> String {
    var part = part
    while part.last == " " { part.removeLast() }
    return String(part)
  }
}
