/// The settings of a downloader apart from its stages.
public struct DownloaderOptions: Sendable {
  /// The clock; the system's by default. Tests replace it.
  public var time: any TimeSource
  /// The random numbers for back-off: returns a number in `0..<1`. Tests replace it.
  public var random: @Sendable () -> Double
  /// How often the checkpoint of a running download is committed to the ledger.
  public var checkpoints: CheckpointPolicy
  /// The least time between two progress events of a download; 100 ms by default.
  public var progressInterval: Duration
  /// What proves that a partial can be resumed if the server gives no strong validator.
  public var resumeValidation: ResumeValidation
  /// How long a lease lasts unless it is renewed; 30 s by default. A lease is renewed three times in this period.
  public var lease: Duration
  /// The minimum speed of a transfer; a slower one fails with `.timedOut`. `nil` for no minimum; by default a transfer
  /// must receive 60 bytes in each minute.
  public var minimumSpeed: MinimumSpeed?
  /// The most bytes that stay free on the storage's disk beside a download of known size; 64 MiB by default, and 0 for
  /// none. It is less for small ones: an eighth of the missing bytes, but 1 MiB at least.
  ///
  /// A download of 1 MiB or more that does not fit beside it, and beside what running downloads have yet to receive, waits
  /// for the disk before it writes a byte (``Awaited/disk``), and goes on when there is room. Others go on meanwhile.
  /// To keep more free, also from downloads of unknown size, use a gate such as `DiskSpace`.
  public var diskReserve: Int64
  /// The downloads of the ledger that this downloader runs; all of them by default.
  public var scope: LeaseScope
  /// Whether the downloader is suspended until ``Downloader/setSuspended(_:)`` is called with `false`; `false` by
  /// default.
  ///
  /// Use a suspended downloader to list, change and remove downloads without running them.
  public var startsSuspended: Bool
  /// Where the tasks of the downloader run; a simulation decides their order.
  package var executors = Executors()
  /// Told what the engine decides; `nil` outside of simulations.
  package var probe: EngineProbe?
  #if SABOTAGE
    /// A defect that a test of simulations switches on; `nil` for none.
    package var sabotage: Sabotage?
  #endif

  /// Creates options. The defaults suit applications.
  public init(
    time: any TimeSource = SystemTime(),
    random: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
    checkpoints: CheckpointPolicy = CheckpointPolicy(),
    progressInterval: Duration = .milliseconds(100),
    resumeValidation: ResumeValidation = .standard,
    lease: Duration = .seconds(30),
    minimumSpeed: MinimumSpeed? = MinimumSpeed(),
    diskReserve: Int64 = 64 << 20,
    scope: LeaseScope = .all,
    startsSuspended: Bool = false
  ) {
    self.time = time
    self.random = random
    self.checkpoints = checkpoints
    self.progressInterval = progressInterval
    self.resumeValidation = resumeValidation
    self.lease = lease
    self.minimumSpeed = minimumSpeed
    self.diskReserve = diskReserve
    self.scope = scope
    self.startsSuspended = startsSuspended
  }
}

/// How often the checkpoint of a running download is committed to the ledger: after a number of bytes or a time,
/// whichever comes first. With the default number of bytes or more, checkpoints that are due because of their bytes are at
/// least 100 ms apart.
///
/// If the process dies, at most the bytes since the last checkpoint are downloaded again. No checkpoint is committed for
/// a body whose announced length is at most 256 KiB, or at most ``bytes`` if that is less.
public struct CheckpointPolicy: Sendable, Hashable {
  /// The number of bytes between two checkpoints.
  public var bytes: Int64
  /// The time between two checkpoints.
  public var interval: Duration

  /// Creates a policy; by default a checkpoint is committed after 4 MiB or a second.
  public init(bytes: Int64 = 4 << 20, interval: Duration = .seconds(1)) {
    self.bytes = bytes
    self.interval = interval
  }
}
