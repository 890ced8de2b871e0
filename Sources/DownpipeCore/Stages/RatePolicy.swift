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

  /// Whether the policy has rates that all downloaders of a ledger share. A downloader does not start with them unless
  /// its ledger can lease shares.
  var sharesRates: Bool { get }
}

extension RatePolicy {
  /// The default: `false`.
  public var sharesRates: Bool { false }
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
  ///   - transfer: The download.
  ///   - now: The current instant, a value of ``TimeSource/now``.
  func pause(after bytes: Int, of transfer: TransferContext, at now: Duration) -> Duration

  /// Returns whether the session may pause a transfer, by the present values of its download.
  ///
  /// The speeds of connections that may be paused say nothing about their servers: the engine replaces no slow ones then. It asks
  /// a few times a second. The default implementation returns `true`.
  /// - Parameter transfer: The download.
  func limits(_ transfer: TransferContext) -> Bool

  /// Returns the shared rates of which the session needs a share now, or a new one.
  ///
  /// It is called for a policy that ``RatePolicy/sharesRates``, soon after a transfer has asked how long it must pause, but
  /// at most ten times in a second, and not while nothing is transferred. A session asks for the first share of a rate at
  /// once, and for the next one when a fifth of its validity has passed and the rate is still in use; it
  /// names at most 256 rates in one call, and the others in the next ones. The default implementation returns none.
  /// - Parameter now: The current instant, a value of ``TimeSource/now``.
  func wants(at now: Duration) -> [RateWant]

  /// Takes the shares that the ledger has leased, one for each want of the last call of ``wants(at:)``, in their order. It
  /// is not called if the ledger has failed: then the former shares hold until they expire.
  ///
  /// **Transfers must not receive bytes without a share**, because others may have it by then. The clock goes on while
  /// the machine sleeps and while the process is stopped.
  /// - Parameters:
  ///   - shares: The shares.
  ///   - asked: The instant from which on they are valid, before the ledger was asked.
  ///   - now: The current instant.
  func take(_ shares: [RateShare], askedAt asked: Duration, at now: Duration)
}

extension RateSession {
  /// The default: `true`.
  public func limits(_ transfer: TransferContext) -> Bool { true }
  /// The default: none.
  public func wants(at now: Duration) -> [RateWant] { [] }
  /// The default: nothing happens.
  public func take(_ shares: [RateShare], askedAt asked: Duration, at now: Duration) {}
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
  ///   - limits: Counts bytes and returns the pause; see ``RateSession/pause(after:of:at:)``.
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
