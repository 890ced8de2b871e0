/// One row of the comparison: the same work for all programs.
struct Row: Sendable {
  enum Work: Sendable, Hashable {
    case file(size: Int64)
    case verified(size: Int64)
    case gunzipped(size: Int64)
    /// A `.tar.zst` of so many bytes of files.
    case unpacked(size: Int64)
    /// Many files, so many at once.
    case list(count: Int, size: Int64, jobs: Int)
    /// One file over so many connections.
    case segments(Int, size: Int64)
    /// Many files at once, from a server that sends 2 KiB/s to each.
    case slow(count: Int, size: Int64)
    /// The time to the first byte of the request.
    case firstByte
    /// The long queue of `Benchmark queue`, without peers.
    case queue(downloads: Int)
  }

  enum Route: Sendable {
    case direct(Site)
    /// A round trip takes so long.
    case delayed(Site, roundTrip: Duration)
    /// The third connection has this rate.
    case oneSlow(Site, bytesPerSecond: Int)
    /// Mirrors of 8, 4 and 1 MiB/s for each connection; the fastest dies after this number of bytes of all three.
    case mirrors(lifetime: Int64)
  }

  /// What `--rows` takes.
  let name: String
  let title: String
  let work: Work
  var route = Route.direct(.plain)
  /// Whether results go to the folder on disk.
  var isOnDisk = false
  /// The programs that can do it, besides Downpipe.
  var peers: [String] = []
  /// Programs whose time the server decides: one measured run is enough.
  var measuredOnce: Set<String> = []
  /// The least seconds that the servers permit.
  var ideal: Double?
  var musts: [Must] = []
}
