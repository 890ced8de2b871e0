/// What happens to a download when its id is added again.
public enum KnownDownload: String, Sendable, Hashable {
  /// The download keeps its request, phase and place in the queue. A failed download stays failed.
  case keep
  /// The download takes over the properties in which the new request differs from the one that was last added.
  ///
  /// Other properties keep changes that were made since then, such as a new priority. An unchanged request changes no
  /// property. A failed download waits for another attempt; a paused or cancelled download keeps its phase. A finished
  /// download is fetched again if the URL has changed, or if a size or digest is asked for that was not before.
  case update
}
