import Downpipe

/// What the pipeline of a command is made of.
struct PipelineSettings: Sendable, Hashable {
  /// Which source fetches.
  enum Transport: String, Sendable, Hashable, CaseIterable {
    /// AsyncHTTPClient.
    case http
    /// Foundation's URLSession.
    case urlSession = "urlsession"
  }

  /// Which source fetches.
  var transport = Transport.http
  /// The proxy's URL.
  var proxy: String?
  /// Downloads at once.
  var jobs = 5
  /// Downloads at once from one host; as many as in all when `nil`.
  var perHost: Int?
  /// How often a failure is tried again.
  var retries = 4
  /// The absolute path of the folder.
  var directory: String
  /// What happens when a name is taken.
  var conflict = ConflictPolicy.keepBoth
  /// The absolute path of the ledger; in memory when `nil`.
  var ledger: String?
  /// Where paths that come out of the ledger may lead.
  var scope = PathScope.everywhere
  /// Whether nothing is fetched, and paths outside of the scope are shown.
  var showsAll = false
}
