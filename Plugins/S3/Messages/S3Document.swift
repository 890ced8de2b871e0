#if LIBCURL
  import DownpipeCore
  import DownpipeXML

  /// An element of a document of the storage, without attributes and namespaces.
  struct S3Document: Sendable {
    var name: String
    var text = ""
    var children: [S3Document] = []

    /// Documents have a few levels.
    private static let deepest = 16

    /// - Throws: `DownloadError` with `.invalidResponse`.
    init(_ bytes: [UInt8]) throws(DownloadError) {
      do { self = try Self.read(bytes) } catch {
        throw DownloadError(.invalidResponse, "the object storage has sent a document that \(error.reason)")
      }
    }

    private init(name: String) { self.name = name }

    private static func read(_ bytes: [UInt8]) throws(MalformedXML) -> S3Document {
      var scanner = XMLScanner(bytes)
      var open: [S3Document] = []
      while let event = try scanner.next() {
        switch event {
        case .start(let name, _):
          guard open.count < deepest else { throw MalformedXML(reason: "has more than \(deepest) levels") }
          open.append(S3Document(name: name))
        case .text(let text): if !open.isEmpty { open[open.count - 1].text += text }
        case .end(let name):
          guard let last = open.popLast(), last.name == name else { throw MalformedXML(reason: "is not well-formed") }
          if open.isEmpty { return last }
          open[open.count - 1].children.append(last)
        }
      }
      throw MalformedXML(reason: "ends early")
    }

    /// The text of the first child with a name.
    subscript(_ name: String) -> String? { children.first { $0.name == name }?.text }

    func all(_ name: String) -> [S3Document] { children.filter { $0.name == name } }
  }
#endif
