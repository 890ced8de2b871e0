public import DownpipeCore
import Synchronization

/// A rate policy that limits each download to the speed that its own request names.
///
/// ```swift
/// RequestedRate("speed limit")                                   // one stage of the pipeline
///
/// try await downloader.update(id) { $0.metadata["speed limit"] = "500000" }   // bytes per second, also while it runs
/// ```
/// The request's metadata has the rate in bytes per second, a decimal number. 0, or a text that is no number, means no limit. A
/// download without a rate of its own has that of the policy, if there is one. Like ``RateLimit`` it is a token bucket with a tenth of a second's bytes.
public struct RequestedRate: RatePolicy, Hashable {
  /// The key of the rate in the request's metadata.
  public let metadataKey: String

  /// The rate of each download that has none of its own; `nil` for no limit.
  public let standard: ByteRate?

  /// Creates a policy.
  ///
  /// - Parameters:
  ///   - metadataKey: The key of the rate in the request's metadata.
  ///   - standard: The rate of each download that has none of its own; `nil` for no limit.
  public init(_ metadataKey: String, otherwise standard: ByteRate? = nil) {
    self.metadataKey = metadataKey
    self.standard = standard
  }

  /// The key and the rate without one, as text.
  public var summary: String { "“\(metadataKey)” of each request\(standard.map { ", otherwise \($0)" } ?? "")" }

  /// Returns a session whose buckets are full.
  public func start(time: any TimeSource) -> any RateSession { Session(self) }

  private final class Session: RateSession {
    /// The instant until which the bytes so far are paid for at a rate.
    private struct Debt: Comparable, Sendable {
      var until: Duration
      var rate: Int64

      static func < (left: Debt, right: Debt) -> Bool { left.until < right.until }
    }

    private let policy: RequestedRate
    private let debts = Mutex(RisingLevels<Debt>())
    /// The time whose bytes may arrive at full speed after an idle time.
    private static let burst: Duration = .milliseconds(100)

    init(_ policy: RequestedRate) { self.policy = policy }

    private func rate(of transfer: TransferContext) -> Int64? {
      guard let own = transfer.metadata[policy.metadataKey] else { return policy.standard?.bytesPerSecond }
      return Int64(own).flatMap { $0 > 0 ? $0 : nil }
    }

    func limits(_ transfer: TransferContext) -> Bool { rate(of: transfer) != nil }

    func pause(after bytes: Int, of transfer: TransferContext, at now: Duration) -> Duration {
      guard let rate = rate(of: transfer) else { return .zero }
      let cost = Duration.seconds(Double(bytes) / Double(rate))
      let full = now - Self.burst
      return debts.withLock { debts in
        // What was received at another rate is not paid for: a raised one takes effect at once.
        let debt = debts[transfer.id.rawValue].flatMap { $0.rate == rate ? $0.until : nil } ?? full
        let until = max(debt, full) + cost
        debts.set(Debt(until: until, rate: rate), for: transfer.id.rawValue, above: Debt(until: now, rate: 0))
        return max(.zero, until - now)
      }
    }
  }
}
