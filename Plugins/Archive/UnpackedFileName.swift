#if Archive
  import DownpipeGzip

  /// The names of what archives and compressed files become.
  package enum UnpackedFileName {
    private static let compressed =
      UnpackedName.suffixes + [
        (".xz", ""), (".txz", ".tar"), (".zst", ""), (".zstd", ""), (".tzst", ".tar"), (".bz2", ""), (".bz", ""),
        (".tbz2", ".tar"), (".tbz", ".tar"), (".tb2", ".tar"), (".lz4", ""), (".tlz4", ".tar"),
      ]
    private static let archives = [".tar", ".zip", ".7z", ".cpio"].map { ($0, "") }

    /// The name of a decompressed file: `a.xz` → `a`, `a.txz` → `a.tar`.
    static func file(for name: String) -> String { UnpackedName.stripping(name, compressed) }

    /// The name of the folder for an archive: `a.tar.xz` → `a`.
    package static func folder(for name: String) -> String {
      UnpackedName.stripping(UnpackedName.stripping(name, compressed), archives)
    }
  }
#endif
