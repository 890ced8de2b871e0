import DownpipeCore

/// Finds out how many connections pay, by hill climbing: it tries more, and keeps what raises the throughput.
///
/// The number doubles while the throughput does about the same, so that the noise of a measurement is small beside the
/// gain that is expected. When the gain is smaller, a bottleneck is reached, and the number becomes what the bottleneck
/// needs at the share of one connection. The number is then held, and one connection more is tried later, at growing
/// intervals.
struct ConnectionSearch: Sendable, Hashable {
  /// The throughput with a number of connections.
  private struct Level: Hashable {
    var connections: Int
    var bytesPerSecond: Double

    /// The share of one connection.
    var share: Double { bytesPerSecond / Double(connections) }
  }

  private enum Phase: Hashable {
    /// The throughput of the number is not known yet.
    case measuring
    /// More connections than at the level were asked for, at an instant.
    case trying(from: Level, since: Duration)
    /// The number is kept until an instant; without one, until the throughput changes.
    case holding(at: Level, until: Duration?)
  }

  private let maximum: Int
  private var wanted = 1
  private var phase = Phase.measuring
  private var window = ThroughputWindow()
  /// The time until the next attempt with one connection more.
  private var pause = Self.firstPause
  /// The number of windows in a row with much less than the level that is held.
  private var poorWindows = 0

  private static let firstPause: Duration = .seconds(10)
  private static let longestPause: Duration = .seconds(60)
  /// For so long, new connections may grow faster (TCP's slow start, a server's own start) before a trial has failed.
  private static let patience: Duration = .seconds(1)
  /// More connections are tried only if the rest takes longer at the present speed: a trial takes about a second.
  private static let shortestRest = 2.0

  init(maximum: Int) { self.maximum = maximum }

  /// Returns the number of connections that the transfer should have.
  mutating func connections(after measurement: SegmentMeasurement) -> Int {
    guard window.add(measurement) else {
      giveUpTrial(measurement)
      return wanted
    }
    let level = Level(connections: window.connections, bytesPerSecond: window.bytesPerSecond)
    switch phase {
    case .measuring:
      grow(from: level, measurement)
    case .trying(let base, let since):
      judge(level, against: base, since: since, measurement)
    case .holding(let base, let until):
      watch(level, base, until: until, measurement)
    }
    return wanted
  }

  /// Keeps a number that servers accept; what was being tried was refused.
  mutating func lower(to number: Int) {
    guard number < wanted else { return }
    wanted = number
    window = ThroughputWindow()
    phase = .measuring
  }

  // MARK: Decisions

  /// Tries twice as many connections.
  private mutating func grow(from level: Level, _ measurement: SegmentMeasurement) {
    attempt(min(max(level.connections, wanted) * 2, maximum), from: level, measurement)
  }

  private mutating func attempt(_ number: Int, from level: Level, _ measurement: SegmentMeasurement) {
    let isWorthIt = Double(measurement.bytesLeft) > level.bytesPerSecond * Self.shortestRest
    guard number > level.connections, isWorthIt else { return hold(level, measurement.time) }
    wanted = number
    // A small step is judged by a longer measurement: its gain is closer to the noise.
    window = isSmallStep(from: level.connections, to: number) ? ThroughputWindow(shortest: Self.patience) : .init()
    phase = .trying(from: level, since: measurement.time)
  }

  private mutating func judge(
    _ level: Level, against base: Level, since: Duration, _ measurement: SegmentMeasurement
  ) {
    let now = measurement.time
    let added = level.connections - base.connections
    guard added > 0 else { return giveUpTrial(measurement) }
    let gain = level.bytesPerSecond - base.bytesPerSecond
    let expected = base.share * Double(added)
    if gain > 0, gain >= expected * 0.7 {
      pause = Self.firstPause
      return isSmallStep(from: base.connections, to: level.connections)
        ? attempt(min(level.connections + 1, maximum), from: level, measurement) : grow(from: level, measurement)
    }
    guard now - since >= Self.patience else { return }
    // What brings less than a seventh of its share is not kept, nor what may be noise.
    guard gain > 0, gain >= max(expected * 0.15, base.bytesPerSecond * 0.06) else {
      wanted = base.connections
      window = ThroughputWindow()
      defer { pause = min(pause * 2, Self.longestPause) }
      return hold(base, now)
    }
    // 5 % of tolerance, so that noise asks for no further connection.
    let needed = (level.bytesPerSecond / base.share * 0.95).rounded(.up)
    wanted = min(max(base.connections + 1, Int(exactly: needed) ?? level.connections), level.connections)
    window = ThroughputWindow()
    hold(Level(connections: wanted, bytesPerSecond: level.bytesPerSecond), now)
  }

  private func isSmallStep(from count: Int, to number: Int) -> Bool { number - count < count }

  /// Ends a trial whose connections were not opened, for example because of a limit per host.
  private mutating func giveUpTrial(_ measurement: SegmentMeasurement) {
    guard case .trying(let base, let since) = phase, measurement.connections <= base.connections,
      measurement.time - since >= Self.patience * 3
    else { return }
    wanted = base.connections
    window = ThroughputWindow()
    hold(base, measurement.time)
  }

  private mutating func watch(_ level: Level, _ base: Level, until: Duration?, _ measurement: SegmentMeasurement) {
    // Fewer connections than wanted say nothing about the wanted number.
    guard level.connections == base.connections else { return }
    poorWindows = level.bytesPerSecond < base.bytesPerSecond * 0.6 ? poorWindows + 1 : 0
    if poorWindows >= 2 {
      // For example a server that limits a connection after its first megabytes.
      poorWindows = 0
      return grow(from: level, measurement)
    }
    if let until, measurement.time >= until {
      attempt(min(level.connections + 1, maximum), from: level, measurement)
    } else if poorWindows == 0 {
      // The newest windows count most.
      let mean = base.bytesPerSecond * 0.75 + level.bytesPerSecond * 0.25
      phase = .holding(at: Level(connections: base.connections, bytesPerSecond: mean), until: until)
    }
  }

  private mutating func hold(_ level: Level, _ now: Duration) {
    wanted = level.connections
    poorWindows = 0
    phase = .holding(at: level, until: level.connections < maximum ? now + pause : nil)
  }
}
