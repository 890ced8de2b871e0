import Foundation

/// Paths of folders on the command line.
enum Folder {
  /// Returns the absolute path of a path as it was typed; `~` is the home folder.
  ///
  /// - Parameter here: The current folder; `nil` if it has no path, because it was deleted or cannot be searched.
  static func absolutePath(_ text: String, from here: String? = current) throws(UsageError) -> String {
    var path = text
    if path == "~" || path.hasPrefix("~/") {
      path = FileManager.default.homeDirectoryForCurrentUser.path(percentEncoded: false) + path.dropFirst(1)
    }
    if !path.hasPrefix("/") {
      guard let here else {
        throw UsageError("the current folder was deleted or cannot be read: change to another one, or give full paths")
      }
      path = here + "/" + path
    }
    return URL(filePath: path, directoryHint: .isDirectory).standardizedFileURL.path(percentEncoded: false)
      .droppingTrailingSlashes
  }

  /// The path of the current folder; `nil` if it has none.
  static var current: String? {
    guard let path = getcwd(nil, 0) else { return nil }
    defer { free(path) }
    // Linux marks a folder that cannot be reached.
    return path[0] == CChar(UInt8(ascii: "/")) ? String(cString: path) : nil
  }

  /// Creates a folder if it does not exist, and checks that it can be written.
  ///
  /// - Parameters:
  ///   - text: The path as it was typed.
  ///   - option: The option it was given with, for the message.
  /// - Returns: Its absolute path.
  static func prepare(_ text: String, option: String) throws(UsageError) -> String {
    guard !text.isEmpty else { throw UsageError("\(option) needs the path of a folder") }
    let path = try absolutePath(text)
    switch kind(path) {
    case .file: throw UsageError("\(option): “\(text)” is a file, not a folder")
    case .directory: break
    case .none:
      guard make(path) else {
        throw UsageError("\(option): “\(text)” cannot be created: \(String(cString: strerror(errno)))")
      }
    }
    guard access(path, W_OK | X_OK) == 0 else {
      throw UsageError("\(option): “\(text)” cannot be written: \(String(cString: strerror(errno)))")
    }
    return path
  }

  /// Returns what a path names, links followed; `nil` when it does not exist.
  static func kind(_ path: String) -> Kind? {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else { return nil }
    return isDirectory.boolValue ? .directory : .file
  }

  /// Whether a path, links followed, is that of a regular file: a FIFO or a device may be read without end.
  static func isRegularFile(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }

  /// Removes the folders of unfinished files, as far as they are empty.
  static func removeEmptyWorkspace(of directory: String) {
    for name in ["partials", "work", ""] { rmdir("\(directory)/.downpipe/\(name)") }
  }

  enum Kind: Hashable {
    case file
    case directory
  }

  /// Returns what prevents a file from being replaced, in words; `nil` for a regular file and for an unused path. Links
  /// are not followed.
  static func obstacle(at path: String) -> String? {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    return switch status.st_mode & S_IFMT {
    case S_IFREG: nil
    case S_IFDIR: "a folder"
    case S_IFLNK: "a symbolic link"
    case S_IFIFO: "a named pipe"
    case S_IFSOCK: "a socket"
    default: "a device"
    }
  }

  /// Creates a folder and its parents. Foundation loses the reason of a failure.
  /// - Returns: Whether the folder exists; `errno` has the reason otherwise.
  private static func make(_ path: String) -> Bool {
    if mkdir(path, 0o777) == 0 || (errno == EEXIST && kind(path) == .directory) { return true }
    guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return false }
    return make(String(path[..<slash])) && (mkdir(path, 0o777) == 0 || errno == EEXIST)
  }
}

extension String {
  fileprivate var droppingTrailingSlashes: String {
    var path = self[...]
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    return String(path)
  }
}
