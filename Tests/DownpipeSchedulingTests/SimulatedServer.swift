import DownpipeCore
import DownpipeScheduling
import DownpipeTesting
import Testing

/// A server with a speed for each connection and one for all of them, measured four times a second.
struct SimulatedServer {
  /// What was open during a measurement, and what was asked for after it.
  struct Moment {
    var open: Int
    var wanted: Int
  }

  var perConnection: Double
  var total: Double
  /// The relative error of each measurement.
  var noise = 0.0
  /// How many connections the server accepts.
  var accepted = Int.max
  /// How many connections the engine opens at most.
  var opened = Int.max
  /// The time after which a connection has its full speed.
  var rampUp = Duration.zero
  private var now = Duration.seconds(1000)
  private var starts: [Duration] = []
  private var wanted = 1
  private var generator: SeededGenerator

  private static let interval: Duration = .milliseconds(250)

  init(perConnection: Double, total: Double, noise: Double = 0, seed: UInt64) {
    self.perConnection = perConnection
    self.total = total
    self.noise = noise
    generator = SeededGenerator(seed: seed)
  }

  /// Transfers with a new session of the policy.
  mutating func run(_ policy: Segmented, bytes: Int64, for time: Duration) throws -> [Moment] {
    run(try #require(policy.start(size: bytes, of: TransferContext())), bytes: bytes, for: time)
  }

  /// Transfers for a time, or until all bytes have arrived.
  mutating func run(_ session: any SegmentSession, bytes: Int64, for time: Duration) -> [Moment] {
    var history: [Moment] = []
    var left = Double(bytes)
    let end = now + time
    if starts.isEmpty { starts = [now] }
    wanted = session.connections(after: SegmentMeasurement(connections: starts.count, bytesLeft: bytes, time: now))
    while now < end, left > 0 {
      // The engine opens what is wanted, and the server refuses what it does not accept.
      let number = min(wanted, opened)
      let refusals = max(0, number - accepted)
      while starts.count > min(number, accepted) { starts.removeLast() }
      while starts.count < min(number, accepted) { starts.append(now) }
      now += Self.interval
      let speeds = starts.map { start in
        rampUp > .zero ? perConnection * min(1, (now - start) / rampUp) : perConnection
      }
      let speed = min(total, speeds.reduce(0, +)) * (1 + .random(in: -noise...noise, using: &generator))
      left -= speed / 4
      wanted = session.connections(
        after: SegmentMeasurement(
          connections: starts.count, bytesPerSecond: speed, bytesLeft: Int64(max(0, left)), refusals: refusals,
          time: now))
      history.append(Moment(open: starts.count, wanted: wanted))
    }
    return history
  }
}
