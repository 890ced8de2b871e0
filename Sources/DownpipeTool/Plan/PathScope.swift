import Downpipe
import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Where paths that come out of a ledger may lead. A ledger is a file, which may have come with an archive or lie in
/// another user's folder: what it names is deleted or written to only below the folder that the command is about and
/// the one that the ledger lies in, unless the user allows more.
struct PathScope: Sendable, Hashable {
  /// The folders; `nil` for the whole file system.
  private let folders: [String]?

  /// No bounds.
  static let everywhere = PathScope(folders: nil)

  private init(folders: [String]?) { self.folders = folders }

  /// The scope of a command.
  ///
  /// - Parameters:
  ///   - directory: the absolute path of the folder that files go to.
  ///   - ledger: the absolute path of the ledger, if there is one.
  ///   - more: further folders that the command line names.
  init(directory: String, ledger: String?, more: [String] = []) {
    var folders = [directory] + more
    if let ledger {
      let folder = Self.parent(of: ledger)
      // The ledger of a folder lies in the folder's own `.downpipe`.
      folders.append(folder.hasSuffix("/.downpipe") ? Self.parent(of: folder) : folder)
    }
    self.init(folders: folders)
  }

  /// Whether a file or a folder may be removed or moved: what counts is where its name is, wherever a link leads that
  /// has the name.
  func contains(entry path: String) -> Bool {
    guard folders != nil else { return true }
    let name = path.split(separator: "/").last.map(String.init) ?? ""
    guard !["", ".", ".."].contains(name) else { return false }
    return contains(folder: Self.parent(of: path))
  }

  /// Whether something may be put into a folder, links followed.
  func contains(folder path: String) -> Bool {
    guard let folders else { return true }
    guard let place = Self.resolved(path) else { return false }
    return folders.compactMap(Self.resolved).contains { root in
      place == root || root == "/" || place.hasPrefix(root + "/")
    }
  }

  /// Refuses what lies outside.
  /// - Throws: ``DownloadError`` with `.unsafePath`.
  func check(folder: String) throws(DownloadError) {
    if !contains(folder: folder) { throw refusal("put the file into", folder) }
  }

  /// Refuses what lies outside.
  /// - Throws: ``DownloadError`` with `.unsafePath`.
  func check(entry path: String) throws(DownloadError) {
    if !contains(entry: path) { throw refusal("take", path) }
  }

  private func refusal(_ action: String, _ path: String) -> DownloadError {
    DownloadError(
      .unsafePath,
      "the ledger says to \(action) “\(path)”, which is outside of “\(folders?.first ?? "/")”: if that is what you want, "
        + "say “downpipe resume --allow-outside”")
  }

  /// The path without links; what does not exist yet is added as it is. `nil` for a path that cannot be resolved.
  private static func resolved(_ path: String) -> String? {
    guard path.hasPrefix("/"), !path.contains("\0") else { return nil }
    var existing = path
    var rest: [Substring] = []
    while true {
      if let real = realpath(existing, nil) {
        defer { free(real) }
        let base = String(cString: real)
        return rest.isEmpty ? base : (base == "/" ? "" : base) + "/" + rest.reversed().joined(separator: "/")
      }
      // A link that leads nowhere yet may lead anywhere later, and so may “..” behind what does not exist.
      guard errno == ENOENT, existing != "/", let last = existing.split(separator: "/").last, last != "..",
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
    "/" + path.split(separator: "/").dropLast().joined(separator: "/")
  }
}
