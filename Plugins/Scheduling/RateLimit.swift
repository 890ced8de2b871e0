public import DownpipeCore
import Synchronization

/// A rate policy that limits the speed of transfers: of all together, of each host, or of each download.
///
/// ```swift
/// RateLimit(.megabytesPerSecond(2))                              // all downloads together
/// RateLimit(.kilobytesPerSecond(500), for: .host, id: "hosts")   // each host
/// ```
/// A token bucket: bytes that arrive are paid for by time. A transfer that has used more than its share pauses until the
/// debt is paid, and the server is slowed down by back-pressure. After an idle time at most a tenth of a second's bytes
/// arrive at full speed, so the average over five seconds is exact to a few percent. Several limits can be combined with
/// an `id` for each.
///
/// The rate can be changed while downloads run, with `replace(_:)` of ``/DownpipeCore/Downloader``.
public struct RateLimit: RatePolicy, Hashable {
  /// The downloads that share a rate.
  public enum Scope: String, Sendable, Hashable {
    /// All downloads.
    case all
    /// Downloads from the same host with its port.
    case host
    /// Each download by itself.
    case download
  }

  /// The highest average speed.
  public let rate: ByteRate
  /// The downloads that share the rate.
  public let scope: Scope
  /// The identifier among the rate policies of the pipeline.
  public let id: String

  /// Creates a limit.
  ///
  /// - Parameters:
  ///   - rate: The highest average speed.
  ///   - scope: The downloads that share the rate.
  ///   - id: The identifier among the rate policies of the pipeline.
  public init(_ rate: ByteRate, for scope: Scope = .all, id: String = "RateLimit") {
    self.rate = rate
    self.scope = scope
    self.id = id
  }

  /// The limit as text.
  public var summary: String {
    switch scope {
    case .all: "\(rate)"
    case .host: "\(rate) from one host"
    case .download: "\(rate) for each download"
    }
  }

  /// Returns a session whose buckets are full.
  public func start() -> any RateSession { Session(limit: self) }

  private final class Session: RateSession {
    private let limit: RateLimit
    /// The instant until which the bytes so far are paid for, by host or download.
    private let paid = Mutex<[String: Duration]>([:])
    /// The time whose bytes may arrive at full speed after an idle time.
    private static let burst: Duration = .milliseconds(100)
    /// Buckets without a debt are forgotten when there are more.
    private static let mostBuckets = 4_096

    init(limit: RateLimit) { self.limit = limit }

    func pause(after bytes: Int, of id: DownloadID, _ candidate: Candidate, at now: Duration) -> Duration {
      let key =
        switch limit.scope {
        case .all: ""
        case .host: candidate.host
        case .download: id.rawValue
        }
      let cost = Duration.seconds(Double(bytes) / Double(limit.rate.bytesPerSecond))
      return paid.withLock { paid in
        if paid.count >= Self.mostBuckets, paid[key] == nil { paid = paid.filter { $0.value > now } }
        let until = max(paid[key] ?? .zero, now - Self.burst) + cost
        paid[key] = until
        return max(.zero, until - now)
      }
    }
  }
}
