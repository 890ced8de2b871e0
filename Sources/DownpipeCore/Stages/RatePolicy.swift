/// A policy that limits the speed of transfers.
///
/// All rate policies of a pipeline apply: the longest pause counts. A policy says how long a transfer pauses; the source
/// pauses it, and the server is slowed down by back-pressure.
public protocol RatePolicy: Stage {
  /// Returns a session that counts bytes while the downloader runs.
  ///
  /// It is called once when a downloader starts, and once when the policy replaces another one.
  /// - Parameter time: The clock of the downloader, for a policy that depends on the date. The session gets the instants
  ///   of its calls, so that it need not ask the clock.
  func start(time: any TimeSource) -> any RateSession
}

extension RatePolicy {
  /// Adds the policy to the pipeline's rate policies.
  public func contribute(to parts: inout PipelineParts) { parts.rates.append(self) }
}

/// A started rate policy.
public protocol RateSession: Sendable {
  /// Counts bytes that have arrived, and returns how long the transfer must pause before it receives more.
  ///
  /// It is called on the transport's thread after each chunk, and again with 0 bytes when a pause has ended; the transfer
  /// goes on when the result is zero. It must be cheap and must not block. Pauses of more than a second are shortened, so
  /// that a policy that replaces this one takes effect soon.
  /// - Parameters:
  ///   - bytes: The number of bytes that have arrived since the last call for this transfer.
  ///   - id: The id of the download.
  ///   - candidate: The properties of the download.
  ///   - now: The current instant, a value of ``TimeSource/now``.
  func pause(after bytes: Int, of id: DownloadID, _ candidate: Candidate, at now: Duration) -> Duration
}

/// The pace of one transfer, which a source keeps after each chunk.
///
/// A source that pushes from an event loop or a thread of its own calls ``pause(after:)`` and sets a timer. A source that
/// pushes from a task calls ``keep(after:)``; ``Body/init(_:pace:discard:)`` does so for an asynchronous sequence.
public struct TransferPace: Sendable {
  private let limits: (@Sendable (Int) -> Duration)?
  private let time: any TimeSource

  /// Creates a pace.
  ///
  /// - Parameters:
  ///   - time: The clock for ``keep(after:)``.
  ///   - limits: Counts bytes and returns the pause; see ``RateSession/pause(after:of:_:at:)``.
  public init(time: any TimeSource = SystemTime(), limits: @escaping @Sendable (_ bytes: Int) -> Duration) {
    self.time = time
    self.limits = limits
  }

  private init() {
    time = SystemTime()
    limits = nil
  }

  /// A pace without a limit.
  public static let unlimited = TransferPace()

  /// Counts bytes that were pushed, and returns how long the transfer must pause, at most a second. After the pause, call
  /// it again with 0 bytes, until it returns zero.
  public func pause(after bytes: Int) -> Duration {
    guard let limits else { return .zero }
    return min(.seconds(1), max(.zero, limits(bytes)))
  }

  /// Counts bytes that were pushed, and returns when the transfer may continue.
  /// - Throws: `CancellationError` when the task is cancelled.
  public func keep(after bytes: Int) async throws {
    var pause = pause(after: bytes)
    while pause > .zero {
      try await time.sleep(for: pause, purpose: .pace)
      pause = self.pause(after: 0)
    }
  }
}

extension TransferPace: Hashable {
  /// All paces are equal: the pace of a request does not change what is requested.
  public static func == (left: Self, right: Self) -> Bool { true }
  /// Hashes nothing.
  public func hash(into hasher: inout Hasher) {}
}
