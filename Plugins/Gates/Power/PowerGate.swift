public import DownpipeCore

/// A gate that is open while the machine has enough power.
///
/// ```swift
/// PowerGate()                               // mains power
/// PowerGate(.charge(atLeast: 30))           // mains power, or 30 % in the battery
/// ```
/// The gate closes only when the system says that the machine runs on its battery, or a charge that is too low; a machine
/// without a battery has mains power. Waiting downloads say why: `PowerGate: the machine runs on its battery, at 71 %`.
///
/// The gate reads the state every 30 seconds: on Linux from `/sys/class/power_supply`, on macOS from IOKit, on iOS from
/// `UIDevice`. Of several batteries, the average charge counts. Batteries of mice and keyboards do not count. A system
/// whose state cannot be read has an open gate.
public struct PowerGate: Gate {
  /// The power that downloads need.
  public struct Need: Sendable, Hashable {
    /// The lowest charge in percent without mains power; `nil` if mains power is needed.
    fileprivate let charge: Int?

    /// Mains power.
    public static let mains = Need(charge: nil)

    /// Mains power, or a minimum charge of the battery.
    ///
    /// - Parameter percent: The charge, from 0 to 100; other values count as the nearest of these.
    public static func charge(atLeast percent: Int) -> Need { Need(charge: min(max(percent, 0), 100)) }
  }

  /// The time between two reads.
  package static let interval: Duration = .seconds(30)

  /// Identifies the gate in its pipeline; `PowerGate` by default.
  public let id: String
  private let need: Need
  private let source: (any PowerSource)?
  private let time: any TimeSource

  /// Creates a gate.
  ///
  /// - Parameters:
  ///   - need: The power that downloads need; mains power by default.
  ///   - id: Identifies the gate in its pipeline.
  public init(_ need: Need = .mains, id: String = "PowerGate") {
    #if os(Linux)
      self.init(need, id: id, source: LinuxPower(), time: SystemTime())
    #elseif os(macOS) || os(iOS)
      self.init(need, id: id, source: ApplePower(), time: SystemTime())
    #else
      self.init(need, id: id, source: nil, time: SystemTime())
    #endif
  }

  package init(
    _ need: Need = .mains, id: String = "PowerGate", source: (any PowerSource)?, time: any TimeSource
  ) {
    self.id = id
    self.need = need
    self.source = source
    self.time = time
  }

  /// What is needed.
  public var summary: String { need.charge.map { "mains power, or \($0) % charge" } ?? "mains power" }

  /// Publishes the current rule and then each change, until the task is cancelled.
  /// - Throws: `CancellationError`.
  public func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    guard let source else { return publish(.open) }
    var published: GateRule.Verdict?
    while true {
      let state = try? await source.read()
      try Task.checkCancellation()
      let verdict = verdict(state ?? PowerState())
      if verdict != published {
        published = verdict
        publish(GateRule(verdict))
      }
      try await time.sleep(for: Self.interval)
    }
  }

  private func verdict(_ state: PowerState) -> GateRule.Verdict {
    guard state.isOnMains == false else { return .open }
    guard let needed = need.charge else {
      let charge = state.charge.map { ", at \($0) %" } ?? ""
      return .closed("\(name): the machine runs on its battery\(charge)")
    }
    guard let charge = state.charge, charge < needed else { return .open }
    return .closed("\(name): the battery is at \(charge) %, and \(needed) % are needed without mains power")
  }
}
