package import DownpipeCore
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Paths as text. Only ``absolute(_:)`` reads the file system.
package enum PathText {
  /// The longest name that common file systems allow, in bytes.
  package static let maximumNameLength = 255

  package static let home = normalized(NSHomeDirectory())

  /// The absolute path of a path as the user wrote it: `~` is the home directory, and other relative paths start at the
  /// working directory. If that was deleted, the path stays relative, so that its use fails; it does not name anything
  /// in the root of the file system.
  package static func absolute(_ path: String) -> String {
    absolute(path, from: FileManager.default.currentDirectoryPath)
  }

  /// - Parameter here: The working directory; empty if it has no path.
  package static func absolute(_ path: String, from here: String) -> String {
    var full = path
    if path == "~" || path.hasPrefix("~/") {
      full = home + path.dropFirst()
    } else if path.hasPrefix("~") {
      full = NSString(string: path).expandingTildeInPath
    }
    if !full.hasPrefix("/"), here.hasPrefix("/") { full = here + "/" + full }
    let parts = full.split(separator: "/", omittingEmptySubsequences: true).filter { $0 != "." }
    guard let last = parts.lastIndex(of: "..") else { return normalized(full) }
    // The meaning of `..` depends on symbolic links, so the system resolves it.
    let prefix = (full.hasPrefix("/") ? "/" : "") + parts[...last].joined(separator: "/")
    guard let real = realpath(prefix, nil) else { return normalized(full) }
    defer { free(real) }
    return normalized(String(cString: real) + "/" + parts[(last + 1)...].joined(separator: "/"))
  }

  /// The path without repeated and trailing slashes and without `.` components.
  package static func normalized(_ path: String) -> String {
    if isNormalized(path) { return path }
    let parts = path.split(separator: "/", omittingEmptySubsequences: true).filter { $0 != "." }
    return (path.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/")
  }

  /// Whether a path is absolute and has neither empty nor `.` components.
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

  /// The part of a path that follows a folder; `nil` when the path is not below the folder.
  package static func remainder(of path: String, below folder: String) -> Substring? {
    let slash = UInt8(ascii: "/")
    let (bytes, prefix) = (path.utf8, folder.utf8)
    // Compares bytes: two Unicode spellings of one letter are two files.
    guard bytes.count > prefix.count, bytes.starts(with: prefix) else { return nil }
    let end = bytes.index(bytes.startIndex, offsetBy: prefix.count)
    if prefix.last == slash { return path[end...] }
    guard bytes[end] == slash, bytes.count > prefix.count + 1 else { return nil }
    return path[bytes.index(after: end)...]
  }

  package static func join(_ folder: String, _ name: some StringProtocol) -> String {
    folder.utf8.last == UInt8(ascii: "/") ? folder + name : folder + "/" + name
  }

  /// The path of the folder that contains an entry, and the entry's name.
  package static func split(_ path: String) -> (folder: String, name: String) {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (".", path) }
    let name = String(path[path.utf8.index(after: slash)...])
    return (slash == path.utf8.startIndex ? "/" : String(path[..<slash]), name)
  }

  /// Whether the text has a `..` component or contains a NUL.
  package static func climbs(_ text: String) -> Bool {
    text.utf8.contains(0) || text.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) }
  }

  /// The components of the relative path of a folder below a root.
  ///
  /// - Throws: `DownloadError` with `.unsafePath` for an absolute path, and for a component that is empty, `.`, `..`,
  ///   has a NUL or is too long.
  package static func components(of directory: String) throws(DownloadError) -> [String] {
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

  /// Checks that the text can be the name of one entry.
  ///
  /// - Throws: `DownloadError` with `.unsafePath`.
  package static func checkName(_ name: String, of path: String? = nil) throws(DownloadError) {
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
