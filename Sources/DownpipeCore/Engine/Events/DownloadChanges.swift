/// A batch of changes, or a snapshot; see ``Downloader/changes(every:)``.
public struct DownloadChanges: Sendable {
  /// The latest status of each changed download, in no particular order; in a snapshot those of all downloads, in the order
  /// of their arrival.
  public let statuses: [DownloadStatus]
  /// The ids of the downloads that were removed; none in a snapshot.
  public let removed: [DownloadID]
  /// Whether the batch is a snapshot: a download that it does not have is gone, unless ``isComplete`` is `false`.
  public let isSnapshot: Bool
  /// Whether waiting downloads may have another reason to wait. A batch does not have their statuses: ask for those that are
  /// shown, with ``Downloader/statuses(of:)``.
  public let reasonsMayHaveChanged: Bool
  /// Whether nothing was left out. A snapshot has at most 10,000 downloads: if the ledger has more, read what is shown with
  /// ``Downloader/statuses(_:)``. The last batch of a downloader that shuts down may leave out downloads that did not run.
  public let isComplete: Bool
}
