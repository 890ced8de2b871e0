import Downpipe

/// The options of a command that its pipeline depends on.
struct PipelineSettings: Sendable, Hashable {
  /// The sources of this build.
  enum Transport: String, Sendable, Hashable, CaseIterable {
    #if LIBCURL
      /// `HTTPSource`.
      case curl
    #endif
    #if AsyncHTTPClient
      /// `AsyncHTTPClientSource`.
      case asyncHTTPClient = "async-http-client"
    #endif
    /// `URLSessionSource`.
    case urlSession = "urlsession"

    /// The source that can hold back URLs of strangers; `nil` if this build has none.
    static var forStrangers: Transport? {
      #if LIBCURL
        .curl
      #else
        nil
      #endif
    }

    static var standard: Transport {
      #if LIBCURL
        .curl
      #else
        .urlSession
      #endif
    }
  }

  var transport = Transport.standard
  var network = NetworkSettings()
  /// The longest wait for a connection, and the longest time of an attempt; the source's defaults when `nil`.
  var connectTimeLimit: Duration?
  var timeLimit: Duration?
  /// Whether the command runs until it is told to stop, and waits where others end with an error.
  var goesOn = false
  /// How many downloads run at once.
  var jobs = 5
  /// The most connections to one host, for all files together; see ``connectionsPerHost`` for `nil`.
  var perHost: Int?
  /// The most downloads from one host at all workers of the ledger; no limit when `nil`.
  var fleetPerHost: Int?
  /// The speed of all downloads of all workers of the ledger together; no limit when `nil`.
  var fleetRate: ByteRate?
  /// The number of connections to each file; as many as raise the throughput when `nil`.
  var connections: Int?
  /// The most connections to each file, if clients of a server say how many.
  var mostConnections = 16
  /// The speed of all downloads together; no limit when `nil`.
  var rateLimit: RateLimit?
  /// How often a failure is retried.
  var retries = 4
  var gates = GateSettings()
  /// The absolute path of the folder.
  var directory: String
  var conflict = ConflictPolicy.keepBoth
  /// The ledger; in memory when `nil`.
  var ledger: LedgerLocation?
  var scope = PathScope.everywhere
  /// Which programs of the ledger run.
  var programs = ProgramRule.none
  /// Whether paths outside of ``scope`` may be listed. Nothing is fetched then.
  var showsAll = false
  /// Whether downloads that are added belong to no folder: any worker of the ledger may take them.
  var isForAnyFolder = false
  /// Whether the pipeline can open URLs. A command that only reads the ledger needs no connections.
  var hasSource = true

  /// The options of the downloader.
  var options: DownloaderOptions {
    var options = DownloaderOptions()
    if let minFree = gates.minFree { options.diskReserve = minFree }
    return options
  }

  /// Sets how many downloads run at once, as far as the descriptors suffice.
  mutating func limitJobs(to wanted: Int) {
    let most = DescriptorLimit.mostDownloads(connections: connections ?? 1)
    if wanted > most {
      OutputFile.warn("no more than \(most) at once: the limit of open files is too low for more (ulimit -n)")
    }
    jobs = min(wanted, most)
    // What the command was not asked for must not use up the descriptors.
    let isScarce = connections == nil && wanted > DescriptorLimit.mostDownloads(connections: Segmented.most)
    if isScarce { connections = 1 }
  }
}
