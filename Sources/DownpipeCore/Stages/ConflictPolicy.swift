/// What a storage does when the name of an artifact exists already.
public enum ConflictPolicy: String, Sendable, Hashable, Codable, CaseIterable {
  /// Replaces the existing file atomically: a reader sees the old file or the new one at any time.
  ///
  /// A file replaces a regular file, and a folder replaces a folder. Anything else with the name, such as a symbolic link,
  /// a FIFO or a device, stays, and the download fails with `.alreadyExists`.
  case replace

  /// Gives the new file a number: `film (1).mkv`, `logs (2).tar.gz`.
  case keepBoth = "keep-both"

  /// Fails with `.alreadyExists`; the existing file stays.
  case fail

  /// Uses the existing file and transfers nothing.
  ///
  /// Before the transfer the file is recognised by its name (from the request, or from the URL) and by the expected size,
  /// if the request has one. If the name is known only after the transfer, the two files are compared byte by byte: the
  /// new file is dropped if they are equal, and gets a number otherwise.
  case reuse

  /// The policy in words, for the summary of a storage.
  package var words: String {
    switch self {
    case .replace: "replace"
    case .keepBoth: "keep both"
    case .fail: "fail if it exists"
    case .reuse: "reuse what exists"
    }
  }
}
