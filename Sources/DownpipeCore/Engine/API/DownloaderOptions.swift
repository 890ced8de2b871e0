/// How a downloader works, apart from its stages.
public struct DownloaderOptions: Sendable {
  /// Where time comes from.
  public var time: any TimeSource
  /// Where chance comes from: a number from 0 up to 1.
  public var random: @Sendable () -> Double
  /// How often running downloads are written to the ledger.
  public var checkpoints: CheckpointPolicy
  /// How often progress is reported at most.
  public var progressInterval: Duration
  /// What to believe when resuming without a strong validator.
  public var resumeValidation: ResumeValidation
  /// How long a lease lasts without being renewed; it is renewed three times in this span.
  public var lease: Duration
  /// The slowest transfer that is not given up and tried again; `nil` for any speed.
  public var minimumSpeed: MinimumSpeed?
  /// Which downloads of the ledger run: all, or those that were added or resumed through this downloader.
  public var scope: LeaseScope
  /// Whether nothing runs before ``Downloader/setSuspended(_:)`` says so: to list, change and remove only.
  public var startsSuspended: Bool

  /// Makes options; the defaults are right for applications.
  public init(
    time: any TimeSource = SystemTime(),
    random: @escaping @Sendable () -> Double = { .random(in: 0..<1) },
    checkpoints: CheckpointPolicy = CheckpointPolicy(),
    progressInterval: Duration = .milliseconds(100),
    resumeValidation: ResumeValidation = .standard,
    lease: Duration = .seconds(30),
    minimumSpeed: MinimumSpeed? = MinimumSpeed(),
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
    self.scope = scope
    self.startsSuspended = startsSuspended
  }
}

/// How often a running download is written to the ledger: after so many bytes or so much time,
/// whichever comes first, but not more often than progress is reported, and not for bodies of 256 KiB or less.
///
/// After the death of the process at most the bytes since the last checkpoint are fetched again.
public struct CheckpointPolicy: Sendable, Hashable {
  /// Bytes between checkpoints.
  public var bytes: Int64
  /// Time between checkpoints.
  public var interval: Duration

  /// Makes a policy: 4 MiB or a second, unless told otherwise.
  public init(bytes: Int64 = 4 << 20, interval: Duration = .seconds(1)) {
    self.bytes = bytes
    self.interval = interval
  }
}
