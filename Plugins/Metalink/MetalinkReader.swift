import DownpipeCore
import DownpipeXML

/// Checks the frame of a document, its encoding and namespaces, and gives its elements to the builder.
struct MetalinkReader {
  private static let deepest = 32
  private static let longestText = 64 << 10
  private static let namespaces: [String: MetalinkDocument.Version] = [
    "http://www.metalinker.org/": .three, "urn:ietf:params:xml:ns:metalink": .four,
  ]

  /// The prefix of the document's elements with its colon, which is usually empty.
  private var prefix = ""
  /// The open elements: as they are written, and without the prefix.
  private var open: [String] = []
  private var path: [String] = []
  private var text = ""

  mutating func read(_ bytes: [UInt8]) throws(DownloadError) -> MetalinkBuilder.Content {
    var scanner = XMLScanner(try Self.decoded(bytes))
    var builder: MetalinkBuilder?
    while let event = try Self.next(&scanner) {
      switch event {
      case .start(let name, let attributes):
        if builder == nil {
          builder = MetalinkBuilder(try version(name, attributes))
        } else if open.isEmpty {
          throw Self.invalid("it has a second root")
        }
        guard open.count < Self.deepest else {
          throw DownloadError(.tooLarge, "the Metalink document has more than \(Self.deepest) levels")
        }
        open.append(name)
        // Elements of other namespaces, and those inside of them, have no meaning here.
        let isOwn = name.hasPrefix(prefix) && !name.dropFirst(prefix.count).contains(":")
        path.append(isOwn ? String(name.dropFirst(prefix.count)) : ":" + name)
        text = ""
        builder?.begin(path, attributes)
      case .text(let part):
        guard builder?.acceptsText(path) == true else {
          if open.isEmpty, !part.allSatisfy(\.isWhitespace) { throw Self.invalid("it has text outside of its root") }
          continue
        }
        guard text.utf8.count + part.utf8.count <= Self.longestText else {
          throw DownloadError(
            .tooLarge, "an element of the Metalink document has more than \(Self.longestText) bytes of text")
        }
        text += part
      case .end(let name):
        guard open.last == name else {
          throw Self.invalid(
            "it is not well-formed XML: “\(name.prefix(40))” ends at the wrong place (line \(scanner.line))")
        }
        try builder?.end(path, text.trimmed)
        text = ""
        open.removeLast()
        path.removeLast()
      }
    }
    guard let builder, open.isEmpty else { throw Self.invalid("it ends early") }
    return builder.content
  }

  private static func next(_ scanner: inout XMLScanner) throws(DownloadError) -> XMLScanner.Event? {
    do { return try scanner.next() } catch { throw invalid(error.reason) }
  }

  private mutating func version(
    _ root: String, _ attributes: [String: String]
  ) throws(DownloadError) -> MetalinkDocument.Version {
    let parts = root.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    prefix = parts.count == 2 ? "\(parts[0]):" : ""
    let namespace = attributes[prefix.isEmpty ? "xmlns" : "xmlns:\(parts[0])"]
    guard parts.last == "metalink", let version = namespace.flatMap({ Self.namespaces[$0] }) else {
      throw Self.invalid("its root is not that of Metalink 3 or 4")
    }
    return version
  }

  static func invalid(_ reason: String) -> DownloadError {
    DownloadError(.invalidMetalink, "the Metalink document cannot be used: \(reason)")
  }

  // MARK: Encoding

  /// Returns the document in UTF-8.
  private static func decoded(_ bytes: [UInt8]) throws(DownloadError) -> [UInt8] {
    guard bytes.count <= MetalinkDocument.maximumBytes else {
      throw DownloadError(.tooLarge, "the Metalink document has more than \(MetalinkDocument.maximumBytes) bytes")
    }
    var decoded = bytes
    switch try encoding(bytes) {
    case "iso-8859-1": decoded = bytes.flatMap { $0 < 0x80 ? [$0] : [0xC0 | $0 >> 6, 0x80 | $0 & 0x3F] }
    default: break
    }
    guard String(validating: decoded, as: UTF8.self) != nil,
      decoded.allSatisfy({ $0 >= 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D })
    else { throw invalid("it is not in the encoding that it states, which is UTF-8 by default") }
    return decoded
  }

  /// The encoding that the XML declaration states.
  private static func encoding(_ bytes: [UInt8]) throws(DownloadError) -> String {
    let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    let head = String(decoding: bytes.dropFirst(start).prefix(400), as: UTF8.self)
    guard head.hasPrefix("<?xml"), let end = head.firstRange(of: "?>"),
      let name = head[..<end.lowerBound].firstRange(of: "encoding")
    else { return "utf-8" }
    let value = head[name.upperBound..<end.lowerBound].drop { "= \t\r\n\"'".contains($0) }
      .prefix { !"\"' ".contains($0) }.lowercased()
    guard ["utf-8", "us-ascii", "ascii", "iso-8859-1"].contains(value) else {
      throw invalid("it is in the encoding “\(value.prefix(40))”, and not in UTF-8")
    }
    return value
  }
}

extension String {
  fileprivate var trimmed: String {
    let start = drop(while: \.isWhitespace)
    return String(start[..<(start.lastIndex { !$0.isWhitespace }.map { start.index(after: $0) } ?? start.startIndex)])
  }
}
