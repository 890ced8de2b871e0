public import DownpipeCore
import DownpipePOSIX

/// A step that sets the modification time of the file to the one that its server states, as `curl --remote-time` and
/// `wget` do.
///
/// ```swift
/// let downloader = try await Downloader {
///   HTTPSource()
///   FileStore("~/Downloads")
///   SetModificationDate()
/// }
/// ```
/// The time is that of `Last-Modified` (RFC 9110 §8.8.2), which is of the downloaded bytes, also if a step has
/// decompressed them. A file without one keeps the time at which it was written, and the step is skipped.
///
/// It may stand before or after a `MoveInto`. A file that has been published is recognised by its size and modification
/// time, and the ledger records the new one. The file system may round the time. A file in memory stays as it is, and so
/// does one that was there before the download (``/DownpipeCore/Artifact/isReused``).
public struct SetModificationDate: PostProcessor {
  let system: FileSystem

  /// Creates a step that sets the modification time.
  public init() { self.init(system: .system) }

  init(system: FileSystem) { self.system = system }

  /// The source of the time.
  public var summary: String { "as the server states" }

  /// The step does not change the bytes.
  public var keepsContent: Bool { true }

  /// Whether the server has stated a modification time.
  public func isNeeded(in context: ProcessingContext) -> Bool { context.lastModified != nil }

  /// Sets the modification time.
  ///
  /// - Throws: `DownloadError` with `.storage` if the file is missing or was changed since it was published;
  ///   `.permission`; `CancellationError` when the task is cancelled before.
  public func process(_ input: File, in context: ProcessingContext) async throws -> File {
    try Task.checkCancellation()
    var artifact = input.artifact
    let isPublished = artifact.modifiedAt != nil
    // After the change the file no longer looks like the recorded one, so a note says which one it is.
    let earlier = isPublished ? context.priorNote.flatMap(Self.inode) : nil
    guard let date = context.lastModified,
      let opened = try ArtifactFile.open(artifact, changedBefore: earlier, system)
    else { return input }
    if isPublished { try await context.note(Self.note(for: opened.status.inode)) }
    let status = try opened.change("set the modification time of", context.durability) {
      descriptor throws(SystemError) in
      try system.setModified(descriptor, to: date)
    }
    if isPublished { artifact.modifiedAt = status.modifiedAt }
    return File(artifact)
  }

  private static func note(for inode: UInt64) -> String { "mtime1 \(inode)" }

  private static func inode(in note: String) -> UInt64? {
    let parts = note.split(separator: " ")
    return parts.count == 2 && parts[0] == "mtime1" ? UInt64(parts[1]) : nil
  }
}
