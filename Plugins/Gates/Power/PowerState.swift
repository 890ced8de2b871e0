/// What is known about the power supply of the machine.
package struct PowerState: Sendable, Hashable {
  /// Whether it has mains power; `nil` if that is not known.
  package var isOnMains: Bool?
  /// The charge of the batteries in percent; `nil` without a battery, or if it is not known.
  package var charge: Int?

  package init(isOnMains: Bool? = nil, charge: Int? = nil) {
    self.isOnMains = isOnMains
    self.charge = charge
  }
}

/// A source of the power state: the system, or a fake in tests.
package protocol PowerSource: Sendable {
  /// Reads the current state.
  func read() async throws -> PowerState
}
