// What the copied files of the tool use of the rest of it.

struct Terminal {
  static func restore() {}
}

final class WriteDeadline: Sendable {
  static let ofTheProcess = WriteDeadline()

  func start(at now: ContinuousClock.Instant) {}
}
