#if Archive
  import DownpipeGzip

  /// The names of what archives and compressed files become.
  enum UnpackedFileName {
    private static let compressed = [
      (".gz", ""), (".tgz", ".tar"), (".taz", ".tar"), (".svgz", ".svg"), (".xz", ""), (".txz", ".tar"), (".zst", ""),
      (".zstd", ""), (".tzst", ".tar"), (".bz2", ""), (".bz", ""), (".tbz2", ".tar"), (".tbz", ".tar"),
      (".tb2", ".tar"), (".lz4", ""), (".tlz4", ".tar"),
    ]
    private static let archives = [".tar", ".zip", ".7z", ".cpio"].map { ($0, "") }

    /// The name of a decompressed file: `a.xz` → `a`, `a.txz` → `a.tar`.
    static func file(for name: String) -> String { stripping(name, compressed) }

    /// The name of the folder for an archive: `a.tar.xz` → `a`.
    static func folder(for name: String) -> String { stripping(stripping(name, compressed), archives) }

    /// The name itself, if it has no such suffix or if the rest is not a file name.
    private static func stripping(_ name: String, _ suffixes: [(String, String)]) -> String {
      let lower = name.lowercased()
      guard lower.count == name.count,
        let (suffix, replacement) = suffixes.first(where: { lower.hasSuffix($0.0) })
      else { return name }
      let stem = name.dropLast(suffix.count)
      let result = String(stem + replacement)
      return stem.isEmpty || !UnpackedName.isComponent(result) ? name : result
    }
  }
#endif
