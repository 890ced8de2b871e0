/// The downloads that a store leases.
public enum LeaseScope: Sendable, Hashable {
  /// All downloads.
  case all
  /// The downloads that were added, resumed or restarted through this store.
  case own
  /// The downloads with the tag.
  case tag(String)
  /// The downloads with these ids.
  case ids(Set<DownloadID>)
}
