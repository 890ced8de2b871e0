/// A name in a folder: an open one, or any if the name is an absolute path.
struct Entry {
  let folder: CInt
  let name: String
  /// The name as a listing gave it, with its NUL: it need not be UTF-8.
  let bytes: [CChar]?

  /// The entry at an absolute path.
  init(_ path: String) {
    self.init(path, in: FileSystem.anywhere)
  }

  /// The entry of an open folder.
  init(_ name: String, in folder: CInt) {
    self.folder = folder
    self.name = name
    bytes = nil
  }

  /// An entry that a listing gave.
  init(bytes: [CChar], in folder: CInt) {
    self.folder = folder
    self.bytes = bytes
    name = String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// An entry of the same name in another folder.
  func moved(to folder: CInt) -> Entry {
    bytes.map { Entry(bytes: $0, in: folder) } ?? Entry(name, in: folder)
  }
}
