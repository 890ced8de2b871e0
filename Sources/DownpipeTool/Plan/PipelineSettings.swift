import Downpipe

/// The options of a command that its pipeline depends on.
struct PipelineSettings: Sendable, Hashable {
  enum Transport: String, Sendable, Hashable, CaseIterable {
    /// The default source, `HTTPSource`: libcurl, or Foundation's URLSession where there is no libcurl.
    case http
    /// Foundation's URLSession.
    case urlSession = "urlsession"
  }

  var transport = Transport.http
  /// The URL of the proxy.
  var proxy: String?
  /// The longest wait for a connection, and the longest time of an attempt; the source's defaults when `nil`.
  var connectTimeLimit: Duration?
  var timeLimit: Duration?
  /// How many downloads run at once.
  var jobs = 5
  /// How many of them from one host; as many as ``jobs`` when `nil`.
  var perHost: Int?
  /// The speed of all downloads together; no limit when `nil`.
  var rateLimit: RateLimit?
  /// How often a failure is retried.
  var retries = 4
  var gates = GateSettings()
  /// The absolute path of the folder.
  var directory: String
  var conflict = ConflictPolicy.keepBoth
  /// The absolute path of the ledger; in memory when `nil`.
  var ledger: String?
  var scope = PathScope.everywhere
  /// Whether paths outside of ``scope`` may be listed. Nothing is fetched then.
  var showsAll = false
  /// Whether the pipeline can open URLs. A command that only reads the ledger needs no connections.
  var hasSource = true
}
