import Downpipe
import Foundation

/// The folders that paths from a ledger may be in. A ledger is a file, and may come from an archive or from another
/// user: paths that it names are written to or removed only below the folder of the command and the folder of the
/// ledger, unless the user allows more.
struct PathScope: Sendable, Hashable {
  /// `nil` for the whole file system.
  private let folders: [String]?

  static let everywhere = PathScope(folders: nil)

  private init(folders: [String]?) { self.folders = folders }

  /// - Parameters:
  ///   - directory: The absolute path of the folder of the command.
  ///   - ledger: The ledger, if there is one.
  ///   - more: Further folders from the command line.
  init(directory: String, ledger: LedgerLocation?, more: [String] = []) {
    var folders = [directory] + more
    if let path = ledger?.path {
      let folder = Self.parent(of: path)
      // By default the ledger is in `.downpipe` below its folder.
      folders.append(folder.hasSuffix("/.downpipe") ? Self.parent(of: folder) : folder)
    }
    self.init(folders: folders)
  }

  /// Whether a file or a folder may be removed or moved. Its own name counts, even where it is a link.
  func contains(entry path: String) -> Bool {
    guard folders != nil else { return true }
    let name = Self.components(path).last ?? ""
    guard !["", ".", ".."].contains(name) else { return false }
    return contains(folder: Self.parent(of: path))
  }

  /// Whether files may be put into a folder, links followed.
  func contains(folder path: String) -> Bool {
    guard let folders else { return true }
    guard let place = Self.resolved(path) else { return false }
    func isIn(_ root: String) -> Bool { place == root || root == "/" || place.hasPrefix(root + "/") }
    // In a path without links, the names of the folders have none either.
    if place == path, folders.contains(where: isIn) { return true }
    return folders.compactMap(Self.resolved).contains(where: isIn)
  }

  /// - Throws: ``DownloadError`` with `.unsafePath` for a path outside.
  func check(folder: String) throws(DownloadError) {
    if !contains(folder: folder) { throw refusal(folder) }
  }

  /// - Throws: ``DownloadError`` with `.unsafePath` for a path outside.
  func check(entry path: String) throws(DownloadError) {
    if !contains(entry: path) { throw refusal(path) }
  }

  private func refusal(_ path: String) -> DownloadError {
    DownloadError(
      .unsafePath,
      "the ledger names “\(path)”, which is outside “\(folders?.first ?? "/")”: if the ledger is yours, run "
        + "“downpipe resume --allow-outside”")
  }

  /// Returns the path without links, as far as it exists; `nil` for a path that cannot be resolved.
  private static func resolved(_ path: String) -> String? {
    guard path.hasPrefix("/"), !path.contains("\0") else { return nil }
    var existing = path
    var rest: [String] = []
    while true {
      if let real = realpath(existing, nil) {
        defer { free(real) }
        let base = String(cString: real)
        return rest.isEmpty ? base : (base == "/" ? "" : base) + "/" + rest.reversed().joined(separator: "/")
      }
      // A dangling link may lead anywhere later, and so may “..” after a name that does not exist.
      guard errno == ENOENT, existing != "/", let last = components(existing).last, last != "..",
        !isLink(existing)
      else { return nil }
      if last != "." { rest.append(last) }
      existing = parent(of: existing)
    }
  }

  private static func isLink(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
  }

  private static func parent(of path: String) -> String {
    "/" + components(path).dropLast().joined(separator: "/")
  }

  /// The names in a path, as the system separates them: also by a slash with a combining mark after it, which is one character
  /// of a string.
  private static func components(_ path: String) -> [String] {
    path.unicodeScalars.split(separator: "/").map { String($0) }
  }
}
