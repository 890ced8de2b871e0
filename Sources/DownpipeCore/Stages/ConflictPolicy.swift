/// The policy of a storage for a destination that exists already.
public enum ConflictPolicy: String, Sendable, Hashable, Codable, CaseIterable {
  /// Replaces the existing file atomically: at any time a reader sees either the old file or the new one.
  ///
  /// A file replaces a regular file, and a folder replaces a folder. Anything else at the destination, such as a
  /// symbolic link, a FIFO or a device, is kept, and the download fails with `.alreadyExists`.
  case replace

  /// Adds a number to the name of the new file: `film (1).mkv`, `logs (2).tar.gz`.
  case keepBoth = "keep-both"

  /// Fails with `.alreadyExists` and keeps the existing file.
  case fail

  /// Uses the existing file and transfers nothing.
  ///
  /// Before the transfer, a file is recognised by its name (from the request or the URL) and by the expected size, if
  /// the request has one. If the name is only known after the transfer, the two files are compared byte by byte: if
  /// they are equal, the new file is removed; otherwise it gets a number.
  case reuse

  /// The policy as text, for the summary of a storage.
  package var words: String {
    switch self {
    case .replace: "replace"
    case .keepBoth: "keep both"
    case .fail: "fail if it exists"
    case .reuse: "reuse what exists"
    }
  }
}
