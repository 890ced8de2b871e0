/// What happens when the name a file is to have is taken already.
public enum ConflictPolicy: String, Sendable, Hashable, Codable, CaseIterable {
  /// The new file takes the place of the old one, atomically: a reader sees one or the other, never neither.
  ///
  /// A file takes the place of a regular file, and a folder that of a folder. Anything else that has the name, such as
  /// a symbolic link, a pipe or a device, stays: that fails with `.alreadyExists`.
  case replace

  /// The new file gets a number: `film (1).mkv`, `logs (2).tar.gz`.
  case keepBoth = "keep-both"

  /// The download fails with `.alreadyExists`; the file that is there is left alone.
  case fail

  /// The file that is there is taken instead, and nothing is transferred.
  ///
  /// Before the transfer it is recognised by its name (the request's, or that of the URL) and, when the
  /// request has one, by its expected size. When the name is known only afterwards, the two files are
  /// compared byte by byte: equal ones leave the old file and drop the new, others are both kept.
  case reuse

  /// The policy in words, for printed pipelines.
  var words: String {
    switch self {
    case .replace: "replace"
    case .keepBoth: "keep both"
    case .fail: "fail if it exists"
    case .reuse: "reuse what exists"
    }
  }
}
