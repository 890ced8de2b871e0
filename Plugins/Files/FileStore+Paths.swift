import DownpipeCore
import DownpipePOSIX

extension FileStore {
  /// A path as the ledger keeps it: relative to the root when it is below it, with `~` when it is below the
  /// home directory, otherwise absolute. Both may be elsewhere at the next start.
  public func storedPath(for path: String) -> String {
    let path = PathText.normalized(path)
    guard path != root else { return "." }
    guard let rest = PathText.remainder(of: path, below: root) else { return storedPath(outsideRoot: path) }
    return rest.hasPrefix("~") ? "./" + rest : String(rest)
  }

  func storedPath(outsideRoot path: String) -> String {
    PathText.remainder(of: path, below: PathText.home).map { "~/" + $0 } ?? path
  }

  /// The absolute path behind what ``storedPath(for:)`` gave.
  ///
  /// - Throws: `DownloadError` with `.unsafePath` for text with `..` or a NUL, or none at all.
  public func path(forStored storedPath: String) throws -> String {
    guard !storedPath.isEmpty, !PathText.climbs(storedPath) else {
      throw DownloadError(
        .unsafePath, "the ledger holds the path “\(storedPath.prefix(200))”, which leaves the root: remove the download"
      )
    }
    if storedPath.hasPrefix("/") { return storedPath }
    if storedPath.hasPrefix("~/") { return PathText.join(PathText.home, storedPath.dropFirst(2)) }
    if storedPath == "." { return root }
    return PathText.join(root, storedPath.hasPrefix("./") ? storedPath.dropFirst(2) : storedPath[...])
  }
}
