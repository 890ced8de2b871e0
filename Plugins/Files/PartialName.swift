import DownpipeCore
import DownpipePOSIX

/// The file names of partials and workspaces.
///
/// An id is any text, so it is escaped: lower-case ASCII letters, digits, `-` and `_` stand for themselves,
/// every other byte is `%` and two digits. Upper-case letters are escaped too, since some file systems take
/// `A` and `a` for the same. Text too long for a name is spread over folders, whose names end in `+`,
/// which no other name holds. So different ids never share a name, and a name tells its id.
enum PartialName {
  /// The end of a partial's name.
  static let suffix = ".part"
  /// The most bytes of an id, as the core demands.
  static let maximumIDLength = 255
  /// The escaped bytes in one component; the rest of 255 is for the generation and the suffix.
  static let chunk = 200
  /// The most folders below each other: three bytes each for 255 bytes, in chunks.
  static let maximumDepth = 3 * maximumIDLength / chunk

  /// The path of a key's partial relative to the folder of partials: `film.12.part`.
  ///
  /// - Throws: `DownloadError` with `.invalidRequest` for an id that is empty or too long.
  static func path(of key: PartialKey) throws(DownloadError) -> String { try stem(of: key) + suffix }

  /// The same without the suffix: `film.12`, a workspace's name.
  static func stem(of key: PartialKey) throws(DownloadError) -> String {
    let id = key.id.rawValue
    guard !id.isEmpty, id.utf8.count <= maximumIDLength else {
      throw DownloadError(.invalidRequest, "a download's id must have 1 to \(maximumIDLength) bytes: choose another")
    }
    return escaped(id) + ".\(key.generation)"
  }

  /// Text as path components, in folders where it is long.
  static func escaped(_ text: String) -> String {
    var path: [UInt8] = []
    path.reserveCapacity(text.utf8.count + 16)
    var inComponent = 0
    func put(_ byte: UInt8) {
      if inComponent == chunk {
        path += [UInt8(ascii: "+"), UInt8(ascii: "/")]
        inComponent = 0
      }
      path.append(byte)
      inComponent += 1
    }
    for byte in text.utf8 {
      if isPlain(byte) {
        put(byte)
      } else {
        put(UInt8(ascii: "%"))
        put(digits[Int(byte >> 4)])
        put(digits[Int(byte & 15)])
      }
    }
    return String(decoding: path, as: UTF8.self)
  }

  /// The key whose partial has this path; `nil` for paths that ``path(of:)`` does not give.
  static func key(ofPath path: String) -> PartialKey? {
    var text = ""
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    for folder in parts.dropLast() {
      guard folder.last == "+" else { return nil }
      text += folder.dropLast()
    }
    guard let last = parts.last, last.hasSuffix(suffix) else { return nil }
    text += last.dropLast(suffix.count)
    guard let dot = text.lastIndex(of: "."), let generation = Int64(text[text.index(after: dot)...]),
      let id = unescaped(text[..<dot])
    else { return nil }
    let key = PartialKey(id: DownloadID(id), generation: generation)
    // Other spellings ("+5", "%61") are not ours.
    return (try? Self.path(of: key)) == path ? key : nil
  }

  private static func unescaped(_ text: Substring) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      if byte != UInt8(ascii: "%") {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value) else { return nil }
      bytes.append(high << 4 | low)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  private static let digits = Array("0123456789abcdef".utf8)

  private static func value(_ digit: UInt8) -> UInt8? { digits.firstIndex(of: digit).map { UInt8($0) } }

  private static func isPlain(_ byte: UInt8) -> Bool {
    (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-")
      || byte == UInt8(ascii: "_")
  }
}
