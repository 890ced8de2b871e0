public import Foundation

extension Artifact {
  /// A second file that a step makes of an artifact, such as the thumbnail of a picture.
  ///
  /// A step adds it with ``ArtifactForm/withCompanion(at:suffix:)``; <doc:WritingAStage> has an example.
  /// Companions are published, renamed, moved and removed with their artifact: `picture (1).jpg` has its thumbnail in
  /// `picture (1).jpg.thumbnail.png`. A name is free only if it is for the artifact and for all its companions.
  ///
  /// **Steps.** Companions are made before the artifact is published or moved to its final place. A step that returns the
  /// artifact that it was given passes them on, as the steps of this package do that keep its content. One that returns a
  /// new `File` drops them: they are removed with the workspace. Steps change and verify the artifact only.
  ///
  /// **Later.** Whether a download's file is there, and whether it is intact, is asked of the artifact only. A companion
  /// that was changed or replaced since it was published is no longer the download's own: it is neither moved nor removed.
  public struct Companion: Sendable, Hashable {
    /// The most companions that an artifact can have.
    public static let maximumCount = 16
    /// The most bytes of a suffix, in UTF-8: names from servers have at most 200 bytes, so that both fit into a file name.
    public static let maximumSuffixLength = 32

    /// The end of the companion's name, after the whole name of the artifact: `.thumbnail.png`. It begins with a dot or a
    /// dash, has no slash and no control character, and is the artifact's only one, also when case is ignored.
    public var suffix: String
    /// The absolute path of the companion, a regular file: in the workspace of the step, and beside the artifact once that
    /// is published.
    public var path: String
    /// The size in bytes of a published companion.
    public var size: ByteCount
    /// The modification time of a published companion, by the clock of its file system; `nil` when the storage does not
    /// keep it.
    public var modifiedAt: Date?

    /// Creates a description of a companion. It is checked when its step has returned it, and fails with `.processing`
    /// then.
    public init(suffix: String, path: String, size: ByteCount = .unknown, modifiedAt: Date? = nil) {
      self.suffix = suffix
      self.path = path
      self.size = size
      self.modifiedAt = modifiedAt
    }

    /// Whether the suffix keeps the rules of ``suffix``.
    package static func isSafe(suffix: String) -> Bool {
      guard let first = suffix.utf8.first, first == UInt8(ascii: ".") || first == UInt8(ascii: "-") else {
        return false
      }
      return (2...maximumSuffixLength).contains(suffix.utf8.count)
        && !suffix.unicodeScalars.contains { $0 == "/" || $0.properties.generalCategory == .control }
    }
  }

  /// The companions as files of their own, with the names that they have beside the artifact.
  public var companionFiles: [Artifact] {
    companions.map {
      Artifact(location: .path($0.path), name: name + $0.suffix, size: $0.size, modifiedAt: $0.modifiedAt)
    }
  }

  /// Checks what can be told of the companions without looking for their files.
  ///
  /// - Throws: ``DownloadError`` with `.processing` for too many companions, and for a suffix or a path that is not allowed.
  package func checkCompanions() throws(DownloadError) {
    guard !companions.isEmpty else { return }
    guard companions.count <= Companion.maximumCount else {
      throw DownloadError(
        .processing,
        "“\(name)” has \(companions.count) companions, and \(Companion.maximumCount) are the most: return a folder")
    }
    for companion in companions {
      guard Companion.isSafe(suffix: companion.suffix) else {
        throw DownloadError(
          .processing,
          "“\(companion.suffix.prefix(60))” cannot end the name of a companion: use a dot or a dash, and then 1 to "
            + "\(Companion.maximumSuffixLength - 1) bytes without slashes and control characters")
      }
      guard companion.path.hasPrefix("/"), !companion.path.utf8.contains(0) else {
        throw DownloadError(
          .processing, "the path of the companion “\(companion.suffix)” is not absolute: write it into the workspace")
      }
    }
    let paths = companions.map(\.path) + [path].compactMap(\.self)
    guard Set(paths).count == paths.count else {
      throw DownloadError(.processing, "a companion of “\(name)” has the path of another file: write one file for each")
    }
    guard Set(companions.map { $0.suffix.lowercased() }).count == companions.count else {
      throw DownloadError(
        .processing, "two companions of “\(name)” have the same suffix: give each one its own")
    }
  }
}

extension ArtifactForm {
  /// Returns the artifact with one more companion.
  ///
  /// - Parameters:
  ///   - path: The absolute path of the file, in the workspace of the step.
  ///   - suffix: The end of its name, after the artifact's own: `.thumbnail.png`; see ``Artifact/Companion/suffix``.
  public func withCompanion(at path: String, suffix: String) -> Self {
    var artifact = artifact
    artifact.companions.append(Artifact.Companion(suffix: suffix, path: path))
    return Self(artifact)
  }
}
