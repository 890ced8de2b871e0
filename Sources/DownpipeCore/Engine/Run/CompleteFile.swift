/// Complete bytes while the steps process them.
struct CompleteFile: Sendable {
  var artifact: Artifact
  /// The partial of the bytes, kept open until the artifact is published.
  let partial: any Partial
  /// Whether the artifact is the partial's own bytes.
  var isUntouched: Bool
  /// Whether there may be a named partial or a workspace to delete.
  var mayLeaveTraces: Bool
  /// The stage that has left a note about the artifact, if the storage does not know the artifact: the stage may have moved
  /// it. On another machine, or if it was removed since, it cannot be found.
  var lastSeenBy: String?
  /// What followed the transfer of the bytes; `nil` if they are of an earlier run.
  var following: Following?

  /// Closes the partial. Errors are ignored: flushing the bytes has reported them before.
  func close() { try? partial.close() }
}

extension DownloadError {
  /// Another program has cut the partial while it was written.
  static func shortened(to size: Int64, of written: Int64) -> DownloadError {
    DownloadError(
      .storage,
      "another program has cut the unfinished file: it has \(size) of the \(written) bytes written to it. Resume the "
        + "download to fetch the file again")
  }
}
