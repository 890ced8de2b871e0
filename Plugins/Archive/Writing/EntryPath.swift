#if Archive
  import DownpipeCore

  /// The rules for the names of entries.
  struct EntryPath {
    let format: ArchiveFormat
    let limits: Unarchive.Limits

    /// The components of a name as far as patterns are concerned: without empty ones and `.`.
    static func loose(_ name: String) -> [String] {
      name.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }.filter { $0 != "." }
    }

    /// The components of a name, empty for the root itself.
    ///
    /// - Throws: `DownloadError` with `.unsafePath` for a name that could lead out of the folder, on this system or
    ///   another; `.tooLarge` for one over a limit.
    func components(of name: String) throws(DownloadError) -> [String] {
      guard name.utf8.count <= limits.pathLength else {
        throw DownloadError(
          .tooLarge,
          "the path of the entry \(shown(name)) has \(name.utf8.count) bytes, and the limit is "
            + "\(limits.pathLength): raise Unarchive.Limits.pathLength if you trust the archive")
      }
      if name.utf8.first == UInt8(ascii: "/") { throw unsafe(name, "is an absolute path") }
      if format.hasBackslashes, name.utf8.contains(UInt8(ascii: "\\")) {
        throw unsafe(name, "has a backslash, which separates folders for some programs and not for others")
      }
      let components = Self.loose(name)
      if components.contains("..") { throw unsafe(name, "has a component “..”") }
      if let first = components.first?.utf8, first.count >= 2, first.dropFirst().first == UInt8(ascii: ":"),
        let letter = first.first, (0x61...0x7A).contains(letter | 0x20)
      {
        throw unsafe(name, "begins with a drive letter")
      }
      if name.utf8.contains(0) { throw unsafe(name, "has a NUL") }
      if let long = components.first(where: { $0.utf8.count > limits.nameLength }) {
        throw DownloadError(
          .tooLarge,
          "the name \(shown(long)) of an entry has \(long.utf8.count) bytes, and the limit is "
            + "\(limits.nameLength) (Unarchive.Limits.nameLength; file systems allow 255)")
      }
      guard components.count <= limits.depth else {
        throw DownloadError(
          .tooLarge,
          "the entry \(shown(name)) is in \(components.count - 1) folders, and the limit is "
            + "\(limits.depth - 1): raise Unarchive.Limits.depth if you trust the archive")
      }
      return components
    }

    private func unsafe(_ name: String, _ reason: String) -> DownloadError {
      DownloadError(
        .unsafePath,
        "the entry \(shown(name)) of the archive \(reason). Do not trust the archive, or leave out the entry: "
          + "Unarchive(except:)")
    }
  }
#endif
