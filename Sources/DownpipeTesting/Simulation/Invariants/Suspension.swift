/// Whether a process may transfer, as far as its users have said.
struct Suspension: Sendable {
  var isGateClosed = false
  var isSuspended = false
  /// The number of calls that end a suspension.
  var endings = 0
  private(set) var closedSince: Duration?

  mutating func update(at now: Duration) {
    closedSince = isGateClosed || isSuspended ? closedSince ?? now : nil
  }
}
