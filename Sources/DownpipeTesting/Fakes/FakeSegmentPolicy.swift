public import DownpipeCore

/// A segment policy that calls a closure and records the measurements that it is given.
///
/// ```swift
/// let policy = FakeSegmentPolicy(maximum: 4)                                  // always four connections
/// let growing = FakeSegmentPolicy(maximum: 4) { $0.connections + 1 }
/// ```
public final class FakeSegmentPolicy: SegmentPolicy, SegmentSession {
  /// The most connections that it asks for.
  public let maximumConnections: Int
  private let deciding: @Sendable (SegmentMeasurement) -> Int
  private let recorded = Watched<(sizes: [Int64], measurements: [SegmentMeasurement])>(([], []))

  /// Creates a policy for files of any size.
  ///
  /// - Parameters:
  ///   - maximum: The most connections.
  ///   - deciding: Returns the number of connections; the most when it is left out.
  public init(maximum: Int, _ deciding: (@Sendable (SegmentMeasurement) -> Int)? = nil) {
    maximumConnections = maximum
    self.deciding = deciding ?? { _ in maximum }
  }

  /// The sizes of the files that it was asked about, in order.
  public var sizes: [Int64] { recorded.value.sizes }
  /// The measurements so far, in order; the first one of each file is that at its start.
  public var measurements: [SegmentMeasurement] { recorded.value.measurements }

  /// Waits for at least `count` measurements. Returns early when the waiting task is cancelled.
  public func measurements(atLeast count: Int) async { await recorded.wait { $0.measurements.count >= count } }

  /// Records the size and returns itself.
  public func start(size: Int64, of transfer: TransferContext) -> (any SegmentSession)? {
    recorded.update { $0.sizes.append(size) }
    return self
  }

  /// Records the measurement and calls the closure.
  public func connections(after measurement: SegmentMeasurement) -> Int {
    recorded.update { $0.measurements.append(measurement) }
    return deciding(measurement)
  }
}
