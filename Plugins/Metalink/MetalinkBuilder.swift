import DownpipeCore
import Foundation

/// Collects the content of a document from its elements, as they begin and end.
struct MetalinkBuilder {
  struct Content {
    var version: MetalinkDocument.Version
    var origin: URL?
    var isDynamic = false
    var files: [MetalinkDocument.File] = []
    var skipped: [MetalinkDocument.SkippedFile] = []
  }

  /// A file whose element has begun.
  private struct Draft {
    var name: String?
    var size: Int64?
    var digests: [FileDigest] = []
    var pieces: [MetalinkDocument.Pieces] = []
    var unknownAlgorithms: [String] = []
    var mirrors: [MetalinkDocument.Mirror] = []
    var metaURLs: [MetalinkDocument.MetaURL] = []
    var pieceCount = 0
    var urlCount = 0
    /// Why the file is refused: the first thing that is malformed in it.
    var fault: String?
  }

  private struct DraftPieces {
    var algorithm: DigestAlgorithm
    var length: Int64
    /// The digests with their numbers in version 3.
    var digests: [(number: Int, digest: FileDigest)] = []
  }

  private(set) var content: Content
  private var file: Draft?
  private var pieces: DraftPieces?
  private var attributes: [String: String] = [:]
  private var names: Set<String> = []

  init(_ version: MetalinkDocument.Version) { content = Content(version: version) }

  private var isVersion3: Bool { content.version == .three }

  /// The elements from the root to those of a file.
  private func isFile(_ path: [String]) -> Bool {
    path == (isVersion3 ? ["metalink", "files", "file"] : ["metalink", "file"])
  }

  /// The elements below the one of a file; `nil` for elements elsewhere.
  private func parts(_ path: [String]) -> ArraySlice<String>? {
    let depth = isVersion3 ? 3 : 2
    return file != nil && path.count > depth && isFile(Array(path[..<depth])) ? path[depth...] : nil
  }

  /// Whether the text of an element has a meaning.
  func acceptsText(_ path: [String]) -> Bool {
    ["url", "metaurl", "hash", "size", "origin", "dynamic"].contains(path.last)
  }

  mutating func begin(_ path: [String], _ attributes: [String: String]) {
    self.attributes = attributes
    if path.count == 1, isVersion3 {
      content.origin = attributes["origin"].flatMap(HTTPURL.parse)
      content.isDynamic = attributes["type"] == "dynamic"
    } else if isFile(path) {
      file = Draft(name: attributes["name"])
    } else if let parts = parts(path), Array(parts) == (isVersion3 ? ["verification", "pieces"] : ["pieces"]) {
      beginPieces()
    }
  }

  mutating func end(_ path: [String], _ text: String) throws(DownloadError) {
    if isFile(path) { return try endFile() }
    if path == ["metalink", "origin"], !isVersion3 {
      content.origin = HTTPURL.parse(text)
      content.isDynamic = attributes["dynamic"] == "true"
    }
    guard let parts = parts(path) else { return }
    switch (Array(parts), isVersion3) {
    case (["size"], _): setSize(text)
    case (["hash"], false), (["verification", "hash"], true): addDigest(text)
    case (["pieces", "hash"], false), (["verification", "pieces", "hash"], true): try addPiece(text)
    case (["pieces"], false), (["verification", "pieces"], true): endPieces()
    case (["url"], false), (["resources", "url"], true): try addURL(text)
    case (["metaurl"], false): try addMetaURL(text, attributes["mediatype"])
    default: break
    }
  }

  // MARK: Parts of a file

  /// Notes why the file is refused. A check that the document asks for must not be left out because it cannot be read.
  private mutating func refuse(_ reason: String) {
    if file?.fault == nil { file?.fault = reason }
  }

  /// How many unknown algorithms of a file are named.
  private static let mostUnknown = 32

  private mutating func noteUnknown(_ algorithm: DigestAlgorithm) {
    let name = String(algorithm.name.prefix(64))
    guard let known = file?.unknownAlgorithms, known.count < Self.mostUnknown, !known.contains(name) else { return }
    file?.unknownAlgorithms.append(name)
  }

  private mutating func setSize(_ text: String) {
    guard let size = Self.wholeNumber(text) else { return refuse("its size is not a number of bytes") }
    if let known = file?.size, known != size { refuse("it has two sizes") }
    file?.size = size
  }

  private mutating func addDigest(_ text: String) {
    guard let type = attributes["type"], !type.isEmpty else { return refuse("it has a hash without a type") }
    let algorithm = DigestAlgorithm(type)
    guard algorithm.byteCount != nil else { return noteUnknown(algorithm) }
    guard let digest = FileDigest(algorithm, hex: text) else {
      return refuse("one of its hashes is not a \(algorithm) in hexadecimal digits")
    }
    let known = file?.digests.first { $0.algorithm == algorithm }
    if known == nil { file?.digests.append(digest) }
    if let known, known != digest { refuse("it has two different hashes of the type \(algorithm)") }
  }

  private mutating func beginPieces() {
    guard let type = attributes["type"], !type.isEmpty else { return refuse("it has pieces without a type") }
    guard let length = attributes["length"].flatMap(Self.wholeNumber), length > 0 else {
      return refuse("the length of its pieces is not a number of bytes")
    }
    let algorithm = DigestAlgorithm(type)
    guard algorithm.byteCount != nil else { return noteUnknown(algorithm) }
    pieces = DraftPieces(algorithm: algorithm, length: length)
  }

  private mutating func addPiece(_ text: String) throws(DownloadError) {
    // No copy of the pieces: it would make each addition a copy of all digests.
    guard let algorithm = pieces?.algorithm, let count = pieces?.digests.count else { return }
    file?.pieceCount += 1
    guard (file?.pieceCount ?? 0) <= MetalinkDocument.maximumPieces else {
      throw DownloadError(
        .tooLarge, "a file of the Metalink document has more than \(MetalinkDocument.maximumPieces) pieces")
    }
    guard let digest = FileDigest(algorithm, hex: text) else {
      return refuse("the hash of one of its pieces is not a \(algorithm) in hexadecimal digits")
    }
    guard let number = isVersion3 ? attributes["piece"].flatMap({ Int($0) }) : count else {
      return refuse("the hash of one of its pieces does not say of which piece it is")
    }
    pieces?.digests.append((number, digest))
  }

  private mutating func endPieces() {
    defer { pieces = nil }
    guard let pieces else { return }
    let sorted = pieces.digests.sorted { $0.number < $1.number }
    // Without one of them, those that follow would be of other pieces.
    guard sorted.enumerated().allSatisfy({ $0.offset == $0.element.number }) else {
      return refuse("the hashes of its pieces are not numbered from 0 on, each once")
    }
    file?.pieces.append(
      MetalinkDocument.Pieces(
        algorithm: pieces.algorithm, length: pieces.length, digests: sorted.map(\.digest)))
  }

  private mutating func addURL(_ text: String) throws(DownloadError) {
    // Version 3 lists torrents with the mirrors.
    if isVersion3, let type = attributes["type"]?.lowercased(), type == "bittorrent" {
      return try addMetaURL(text, "torrent")
    }
    guard let url = try url(text) else { return }
    let location = attributes["location"]?.lowercased()
    let mirror = MetalinkDocument.Mirror(
      url: url, priority: priority, preference: preference,
      location: location.flatMap { $0.utf8.count == 2 ? $0 : nil })
    file?.mirrors.append(mirror)
  }

  private mutating func addMetaURL(_ text: String, _ mediaType: String?) throws(DownloadError) {
    guard let url = try url(text) else { return }
    let metaURL = MetalinkDocument.MetaURL(
      url: url, mediaType: mediaType.map { String($0.prefix(255)) }, priority: priority, preference: preference)
    file?.metaURLs.append(metaURL)
  }

  private var priority: Int? { isVersion3 ? nil : number("priority", 1...999_999) }
  private var preference: Int? { isVersion3 ? number("preference", 0...1000) : nil }

  private func number(_ name: String, _ range: ClosedRange<Int>) -> Int? {
    attributes[name].flatMap { Int($0) }.flatMap { range.contains($0) ? $0 : nil }
  }

  private mutating func url(_ text: String) throws(DownloadError) -> URL? {
    file?.urlCount += 1
    guard (file?.urlCount ?? 0) <= MetalinkDocument.maximumURLs else {
      throw DownloadError(
        .tooLarge, "a file of the Metalink document has more than \(MetalinkDocument.maximumURLs) URLs")
    }
    return text.utf8.count <= 8192 ? HTTPURL.parse(text) : nil
  }

  // MARK: The file

  private mutating func endFile() throws(DownloadError) {
    guard let draft = file else { return }
    file = nil
    guard content.files.count + content.skipped.count < MetalinkDocument.maximumFiles else {
      throw DownloadError(
        .tooLarge, "the Metalink document has more than \(MetalinkDocument.maximumFiles) files")
    }
    guard let name = draft.name else { return content.skipped.append(.init(name: nil, reason: "it has no name")) }
    let hasURL = !draft.mirrors.isEmpty || !draft.metaURLs.isEmpty
    let fault =
      !Self.isSafe(name)
      ? "its name is not a safe relative path"
      : names.contains(name)
        ? "an earlier file has its name" : draft.fault ?? Self.fault(of: draft) ?? (hasURL ? nil : "it has no URL")
    names.insert(name)
    if let fault { return content.skipped.append(.init(name: String(name.prefix(255)), reason: fault)) }
    content.files.append(
      MetalinkDocument.File(
        name: name, size: draft.size, digests: draft.digests, pieces: draft.pieces,
        unknownAlgorithms: draft.unknownAlgorithms,
        mirrors: Self.sorted(draft.mirrors, \.priority, \.preference),
        metaURLs: Self.sorted(draft.metaURLs, \.priority, \.preference)))
  }

  /// What is wrong with the parts of a file together: the number of its pieces.
  private static func fault(of draft: Draft) -> String? {
    for pieces in draft.pieces {
      let count = Int64(pieces.digests.count)
      guard let size = draft.size else {
        if count == 0 { return "its pieces have no hashes" }
        continue
      }
      let expected = size == 0 ? 0 : (size - 1) / pieces.length + 1
      // Some programs give an empty file a piece.
      guard count != expected, size > 0 || count > 1 else { continue }
      return "it has the hashes of \(count) pieces, but \(size) bytes have \(expected) of \(pieces.length) bytes"
    }
    return nil
  }

  /// A number in decimal digits alone.
  private static func wholeNumber(_ text: String) -> Int64? {
    text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int64(text) : nil
  }

  /// Whether a name is a relative path that stays in its folder on every system (RFC 5854 §4.1.2.1).
  private static func isSafe(_ name: String) -> Bool {
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    guard !name.isEmpty, name.utf8.count <= 1024, parts.count <= 16,
      parts.allSatisfy({ !["", ".", ".."].contains($0) && $0.utf8.count <= 255 }),
      !name.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F || $0 == "\\" })
    else { return false }
    // C:name is a path on another drive of Windows.
    let start = name.unicodeScalars.prefix(2)
    return !(start.count == 2 && start.last == ":")
  }

  /// The best first: the lowest priority, or the highest preference; those without one last, in the order of the document.
  private static func sorted<Link>(
    _ links: [Link], _ priority: KeyPath<Link, Int?>, _ preference: KeyPath<Link, Int?>
  ) -> [Link] {
    links.enumerated().sorted { left, right in
      func place(_ link: Link) -> Int { link[keyPath: priority] ?? link[keyPath: preference].map { -$0 } ?? .max }
      return (place(left.element), left.offset) < (place(right.element), right.offset)
    }.map(\.element)
  }
}
