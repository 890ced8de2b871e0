import DownpipeCore
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Paths as text: nothing here asks the file system, but for ``absolute(_:)``.
enum PathText {
  /// The longest name that common file systems take, in bytes.
  static let maximumNameLength = 255

  /// The user's home directory.
  static let home = normalized(NSHomeDirectory())

  /// A path as the user wrote it, made absolute: `~` is the home directory, other relative paths begin
  /// at the working directory.
  static func absolute(_ path: String) -> String {
    var full = path
    if path == "~" || path.hasPrefix("~/") {
      full = home + path.dropFirst()
    } else if path.hasPrefix("~") {
      full = NSString(string: path).expandingTildeInPath
    }
    if !full.hasPrefix("/") { full = FileManager.default.currentDirectoryPath + "/" + full }
    let parts = full.split(separator: "/", omittingEmptySubsequences: true).filter { $0 != "." }
    guard let last = parts.lastIndex(of: "..") else { return normalized(full) }
    // What `..` means depends on symbolic links, so that the system has to say.
    let prefix = "/" + parts[...last].joined(separator: "/")
    guard let real = realpath(prefix, nil) else { return normalized(full) }
    defer { free(real) }
    return normalized(String(cString: real) + "/" + parts[(last + 1)...].joined(separator: "/"))
  }

  /// A path without doubled and trailing slashes and without `.`.
  static func normalized(_ path: String) -> String {
    if isNormalized(path) { return path }
    let parts = path.split(separator: "/", omittingEmptySubsequences: true).filter { $0 != "." }
    return (path.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/")
  }

  /// Whether a path is absolute and has neither empty components nor `.`, as most have.
  private static func isNormalized(_ path: String) -> Bool {
    let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))
    guard path.utf8.first == slash else { return false }
    var (length, last) = (0, slash)
    for byte in path.utf8.dropFirst() {
      if byte == slash, length == 0 || (length == 1 && last == dot) { return false }
      length = byte == slash ? 0 : length + 1
      last = byte
    }
    return length > 1 || (length == 1 && last != dot)
  }

  /// What remains of a path below a folder; `nil` when it is not below it.
  static func remainder(of path: String, below folder: String) -> Substring? {
    let prefix = folder.hasSuffix("/") ? folder : folder + "/"
    // Byte by byte: two spellings of one letter are two files.
    guard path.utf8.count > prefix.utf8.count, path.utf8.starts(with: prefix.utf8) else { return nil }
    return path[path.utf8.index(path.utf8.startIndex, offsetBy: prefix.utf8.count)...]
  }

  /// A folder's path with a name behind it.
  static func join(_ folder: String, _ name: some StringProtocol) -> String {
    folder.hasSuffix("/") ? folder + name : folder + "/" + name
  }

  /// The path of the folder that holds an entry, and the entry's name.
  static func split(_ path: String) -> (folder: String, name: String) {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (".", path) }
    let name = String(path[path.utf8.index(after: slash)...])
    return (slash == path.utf8.startIndex ? "/" : String(path[..<slash]), name)
  }

  /// Whether text has a `..` among its components, or a NUL.
  static func climbs(_ text: String) -> Bool {
    text.utf8.contains(0) || text.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) }
  }

  /// The components of a folder below a root.
  ///
  /// - Throws: `DownloadError` with `.unsafePath` for anything that is not plainly below it: an absolute path, `.`
  ///   and `..`, NUL, empty components.
  static func components(of directory: String) throws(DownloadError) -> [String] {
    guard directory.utf8.count <= 4096 else {
      throw DownloadError(.unsafePath, "the destination folder's path is longer than 4,096 bytes: shorten it")
    }
    if directory.hasPrefix("/") {
      throw DownloadError(
        .unsafePath, "the destination folder “\(directory)” is absolute: give one relative to the storage's root")
    }
    return try directory.split(separator: "/", omittingEmptySubsequences: false).map { part throws(DownloadError) in
      try checkName(String(part), of: directory)
      return String(part)
    }
  }

  /// Checks that text is the name of one entry.
  ///
  /// - Throws: `DownloadError` with `.unsafePath`.
  static func checkName(_ name: String, of path: String? = nil) throws(DownloadError) {
    let shown = (path ?? name).prefix(200)
    if name.isEmpty {
      throw DownloadError(.unsafePath, "the destination “\(shown)” has an empty component: name a file and its folders")
    }
    if name == "." || name == ".." {
      throw DownloadError(
        .unsafePath, "the destination “\(shown)” has a component “\(name)”: write the path without it")
    }
    if name.utf8.contains(where: { $0 == 0 || $0 == UInt8(ascii: "/") }) {
      throw DownloadError(.unsafePath, "the destination “\(shown)” has a slash or a NUL in a name: rename it")
    }
    if name.utf8.count > maximumNameLength {
      throw DownloadError(
        .unsafePath, "the name “\(name.prefix(60))…” is longer than \(maximumNameLength) bytes: shorten it")
    }
  }
}
