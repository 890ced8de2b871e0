/// A name in an open folder, or an absolute path.
package struct Entry {
  package let folder: CInt
  package let name: String
  /// The name as a listing returned it, with its NUL: it may be invalid UTF-8.
  package let bytes: [CChar]?

  /// The entry at an absolute path.
  package init(_ path: String) {
    self.init(path, in: FileSystem.anywhere)
  }

  /// The entry of an open folder.
  package init(_ name: String, in folder: CInt) {
    self.folder = folder
    self.name = name
    bytes = nil
  }

  /// An entry from a listing.
  package init(bytes: [CChar], in folder: CInt) {
    self.folder = folder
    self.bytes = bytes
    name = String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The entry with the same name in another folder.
  package func moved(to folder: CInt) -> Entry {
    bytes.map { Entry(bytes: $0, in: folder) } ?? Entry(name, in: folder)
  }
}
