import DownpipePOSIX

/// The open file of a partial while it is published.
struct HeldFile: Sendable {
  let file: OpenFile
  let status: FileStatus
  /// The path of the file among the partials; `nil` for a file without a name.
  let name: String?
  /// Keeps the file open and claimed.
  let partial: FilePartial
}
