import DownpipeCore
import DownpipePOSIX

/// The file names of partials and workspaces.
///
/// An id is any text, so it is escaped: lower-case ASCII letters, digits, `-` and `_` stay, and every other byte
/// becomes `%` and two hexadecimal digits. Upper-case letters are escaped, too, since some file systems do not
/// distinguish `A` and `a`. An id that is too long for one name is split into folders whose names end in `+`, a
/// character that no other name contains. So each id has a name of its own, and the id can be read from the name.
enum PartialName {
  /// The end of the stem of a download's second partial.
  private static let second = ".second"
  /// The suffix of a partial's name.
  static let suffix = ".part"
  /// The longest id that the core allows, in bytes.
  static let maximumIDLength = 255
  /// The escaped bytes in one component. The rest of 255 bytes is for the generation and the suffix.
  static let chunk = 200
  /// The maximum number of nested folders: each of 255 bytes can take three.
  static let maximumDepth = 3 * maximumIDLength / chunk

  /// The path of a key's partial relative to the folder of partials: `film.12.part`.
  ///
  /// - Throws: `DownloadError` with `.invalidRequest` for an id that is empty or too long.
  static func path(of key: PartialKey) throws(DownloadError) -> String { try stem(of: key) + suffix }

  /// The path of a key's workspace relative to the folder of workspaces: `film.12`.
  static func stem(of key: PartialKey) throws(DownloadError) -> String {
    let id = key.id.rawValue
    guard !id.isEmpty, id.utf8.count <= maximumIDLength else {
      throw DownloadError(.invalidRequest, "a download's id must have 1 to \(maximumIDLength) bytes: choose another id")
    }
    return escaped(id) + ".\(key.generation)" + (key.isSecond ? second : "")
  }

  /// The escaped text as a relative path.
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

  /// The key for a result of ``path(of:)``; `nil` for any other path.
  static func key(ofPath path: String) -> PartialKey? {
    var text = ""
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    for folder in parts.dropLast() {
      guard folder.last == "+" else { return nil }
      text += folder.dropLast()
    }
    guard let last = parts.last, last.hasSuffix(suffix) else { return nil }
    text += last.dropLast(suffix.count)
    let isSecond = text.hasSuffix(second)
    if isSecond { text.removeLast(second.count) }
    guard let dot = text.lastIndex(of: "."), let generation = Int64(text[text.index(after: dot)...]),
      let id = unescaped(text[..<dot])
    else { return nil }
    let key = PartialKey(id: DownloadID(id), generation: generation, isSecond: isSecond)
    // Refuses other spellings of the same key, such as "+5" or "%61".
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
