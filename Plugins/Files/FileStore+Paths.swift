import DownpipeCore
import DownpipePOSIX

extension FileStore {
  /// Returns a path in the form that the ledger stores: relative to the root if it is below the root, with `~` if it is
  /// below the home directory, otherwise absolute. So the root and the home directory can be moved.
  public func storedPath(for path: String) -> String {
    let path = PathText.normalized(path)
    guard path != root else { return "." }
    guard let rest = PathText.remainder(of: path, below: root) else { return storedPath(outsideRoot: path) }
    return rest.hasPrefix("~") ? "./" + rest : String(rest)
  }

  func storedPath(outsideRoot path: String) -> String {
    PathText.remainder(of: path, below: PathText.home).map { "~/" + $0 } ?? path
  }

  /// Returns the absolute path for a result of ``storedPath(for:)``.
  ///
  /// - Throws: `DownloadError` with `.unsafePath` for an empty path, and for one with a `..` component or a NUL.
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
