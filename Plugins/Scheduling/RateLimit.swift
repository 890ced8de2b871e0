public import DownpipeCore
import Synchronization

/// A rate policy that limits the speed of transfers: of all together, of each host, or of each download; of this downloader,
/// or of all workers of a ledger together.
///
/// ```swift
/// RateLimit(.megabytesPerSecond(2))                              // all downloads together
/// RateLimit(.kilobytesPerSecond(500), for: .host, id: "hosts")   // each host
/// RateLimit(.megabytesPerSecond(20), across: .fleet)             // all downloads of all workers together
/// ```
/// A token bucket: bytes that arrive are paid for by time. A transfer that has used more than its share pauses until the
/// debt is paid, and the server is slowed down by back-pressure. After an idle time at most a tenth of a second's bytes
/// arrive at full speed, so the average over five seconds is exact to a few percent. Several limits can be combined with
/// an `id` for each.
///
/// With hours, the limit applies during a part of each day only:
///
/// ```swift
/// let office = DailyWindow(from: TimeOfDay(hour: 8), to: TimeOfDay(hour: 18))
/// let limits = [
///   RateLimit(.megabytesPerSecond(2), during: office, id: "office"), RateLimit(.megabytesPerSecond(20)),
/// ]
/// ```
/// A running transfer changes its speed within a second after an hour begins or ends, and within a minute after the clock
/// or the time zone of the system was set.
///
/// The rate can be changed while downloads run, with `replace(_:)` of ``/DownpipeCore/Downloader``.
///
/// ### Across a fleet
///
/// With `across: .fleet` the workers share the rate: limits with the same `id` at all downloaders of a ledger. The ledger
/// leases each of them a share for some seconds, and a downloader with a ledger that cannot do so does not start. Those of
/// this package can; with `PostgresLedger` the workers are on any number of machines.
/// - The shares together are never more than the rate, also while workers come, end, are stopped or lose the database. A
///   worker without a valid share pauses: all workers do when the database cannot be reached for some seconds.
/// - What some workers do not use goes to the others (max-min fairness). A share follows the use once in a second; among more
///   than 50 workers less often, up to every 12 seconds. A new worker has its fair share after about three such times, at
///   once if the rate is not used up. The share of a worker that has died is free when it has expired, after 5 seconds, up
///   to a minute among many workers.
/// - A worker asks for the shares of 256 hosts at a time, the others follow a tenth of a second later.
/// - If workers name different rates, the smallest one holds from the next share of each worker on, and as long as the share
///   of a worker that has named it is valid. Hours are those of each worker's time zone.
/// - Transfers that pay for what has arrived can exceed it for a moment: by a tenth of a second's bytes, and by the chunk that
///   each has received last.
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

  /// The workers whose downloads share a rate.
  public enum Reach: String, Sendable, Hashable {
    /// This downloader.
    case downloader
    /// All downloaders of the ledger together, also on other machines.
    case fleet
  }

  /// The highest average speed.
  public let rate: ByteRate
  /// The downloads that share the rate.
  public let scope: Scope
  /// The workers whose downloads share the rate. A download runs at one worker, so for `.download` it changes nothing.
  public let reach: Reach
  /// The part of each day during which the limit applies; `nil` for the whole day.
  public let hours: DailyWindow?
  /// The identifier among the rate policies of the pipeline.
  public let id: String

  /// Creates a limit.
  ///
  /// - Parameters:
  ///   - rate: The highest average speed.
  ///   - scope: The downloads that share the rate.
  ///   - reach: The workers whose downloads share the rate.
  ///   - hours: The part of each day during which the limit applies; `nil` for the whole day.
  ///   - id: The identifier among the rate policies of the pipeline.
  public init(
    _ rate: ByteRate, for scope: Scope = .all, across reach: Reach = .downloader, during hours: DailyWindow? = nil,
    id: String = "RateLimit"
  ) {
    self.rate = rate
    self.scope = scope
    self.reach = reach
    self.hours = hours
    self.id = id
  }

  /// The limit as text.
  public var summary: String {
    let hours = (sharesRates ? " at all workers" : "") + (hours.map { ", \($0)" } ?? "")
    return switch scope {
    case .all: "\(rate)\(hours)"
    case .host: "\(rate) from one host\(hours)"
    case .download: "\(rate) for each download\(hours)"
    }
  }

  /// Whether the rate is shared with other workers.
  public var sharesRates: Bool { reach == .fleet && scope != .download }

  /// Returns a session whose buckets are full. Across a fleet they are empty until the ledger has leased a share.
  public func start(time: any TimeSource) -> any RateSession { Session(limit: self, time: time) }

  /// The longest time between two looks at the date, which can be set.
  private static let longestView: Duration = .seconds(60)

  private final class Session: RateSession {
    private struct State {
      /// The instant until which the bytes so far are paid for, by host or download.
      var paid = RisingLevels<Duration>()
      /// The bytes that shares of the rate pay for, instead; `nil` if the rate is this downloader's own.
      var leased: LeasedBuckets?
      var applies = true
      /// The instant at which the date decides again whether the limit applies; `nil` before the first time.
      var nextView: Duration?
    }

    private let limit: RateLimit
    private let time: any TimeSource
    private let state: Mutex<State>
    /// The time whose bytes may arrive at full speed after an idle time.
    private static let burst: Duration = .milliseconds(100)

    init(limit: RateLimit, time: any TimeSource) {
      self.limit = limit
      self.time = time
      state = Mutex(State(leased: limit.sharesRates ? LeasedBuckets(rate: limit.rate) : nil))
    }

    func pause(after bytes: Int, of transfer: TransferContext, at now: Duration) -> Duration {
      let key =
        switch limit.scope {
        case .all: ""
        case .host: transfer.candidate.host
        case .download: transfer.id.rawValue
        }
      let cost = Duration.seconds(Double(bytes) / Double(limit.rate.bytesPerSecond))
      return state.withLock { state in
        guard applies(&state, at: now) else { return .zero }
        if let pause = state.leased?.pause(after: bytes, for: key, at: now) { return pause }
        let full = now - Self.burst
        let until = max(state.paid[key] ?? full, full) + cost
        state.paid.set(until, for: key, above: now)
        return max(.zero, until - now)
      }
    }

    func wants(at now: Duration) -> [RateWant] {
      state.withLock { state in
        guard applies(&state, at: now), let wants = state.leased?.wants(at: now) else { return [] }
        return wants.map { want in
          var want = want
          want.key = limit.scope == .host ? "of host \(want.key)" : "of all"
          return want
        }
      }
    }

    func take(_ shares: [RateShare], askedAt asked: Duration, at now: Duration) {
      state.withLock { $0.leased?.take(shares, askedAt: asked, at: now) }
    }

    /// Whether the limit applies at an instant. The calendar is asked only when an hour may have begun or ended.
    private func applies(_ state: inout State, at now: Duration) -> Bool {
      guard let hours = limit.hours else { return true }
      if let nextView = state.nextView, now < nextView { return state.applies }
      let date = time.date
      let hour = hours.state(at: date)
      let change = hour.duration(from: date) ?? RateLimit.longestView
      state.nextView = now + min(change, RateLimit.longestView)
      let applies = if case .closed = hour { false } else { true }
      // Debts of the last time do not count when the limit applies again.
      if applies != state.applies {
        state.paid = RisingLevels<Duration>()
        if state.leased != nil { state.leased = LeasedBuckets(rate: limit.rate) }
      }
      state.applies = applies
      return applies
    }
  }
}
