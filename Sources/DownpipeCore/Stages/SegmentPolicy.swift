/// A policy that decides over how many connections one file is fetched.
///
/// The engine fetches a file in segments only if that is safe: the server has a strong validator for it, states its
/// size, sends it without a content coding, and serves ranges of it that prove to be parts of the same representation.
/// Any other file comes over one connection, as do all files of a pipeline without a segment policy.
///
/// A policy decides nothing else. The engine divides the file, lets idle connections take over from slow ones, chooses
/// among mirrors, and keeps to ``AdmissionPolicy/maximumPerHost`` over all downloads and segments.
public protocol SegmentPolicy: Stage {
  /// Returns the session of one transfer, which decides while the file arrives; `nil` for a single connection.
  ///
  /// It is called when a server has stated the size of the file, and must be cheap.
  /// - Parameters:
  ///   - size: The size of the file in bytes.
  ///   - transfer: The download.
  func start(size: Int64, of transfer: TransferContext) -> (any SegmentSession)?
}

/// The decisions about the connections of one transfer.
public protocol SegmentSession: Sendable {
  /// The most connections that it ever asks for. More than 128 count as 128.
  var maximumConnections: Int { get }

  /// Returns the number of connections that the transfer should have, moved into 1 … ``maximumConnections``.
  ///
  /// It is called at the start and then a few times a second, never concurrently, and must be cheap.
  func connections(after measurement: SegmentMeasurement) -> Int
}

/// What the engine has measured of a transfer since the previous measurement.
public struct SegmentMeasurement: Sendable, Hashable {
  /// The number of open connections.
  public var connections: Int
  /// The throughput of all connections together.
  public var bytesPerSecond: Double
  /// The number of bytes that are still missing.
  public var bytesLeft: Int64
  /// The number of connections that servers refused (429, 503) or that were lost.
  public var refusals: Int
  /// The time of the measurement; a value of ``TimeSource/now``.
  public var time: Duration

  /// Creates a measurement; without arguments except the size, the one at the start of a transfer.
  public init(
    connections: Int = 1, bytesPerSecond: Double = 0, bytesLeft: Int64, refusals: Int = 0, time: Duration = .zero
  ) {
    self.connections = connections
    self.bytesPerSecond = bytesPerSecond
    self.bytesLeft = bytesLeft
    self.refusals = refusals
    self.time = time
  }
}

extension SegmentPolicy {
  /// Becomes the pipeline's segment policy.
  public func contribute(to parts: inout PipelineParts) { parts.segmentPolicies.append(self) }
}
