import Dispatch
import Synchronization

/// Renews the claims that this process holds, all of them by one timer, which runs while there are any.
enum ClaimRenewal {
  /// The time between two renewals, in seconds: two of them may be missed.
  private static let interval = Int(PartialClaim.lease) / 3
  private static let queue = DispatchQueue(label: "downpipe.files.claims", qos: .utility)

  private struct Held {
    var claims: [ObjectIdentifier: PartialClaim] = [:]
    var timer: (any DispatchSourceTimer)?
  }

  private static let held = Mutex(Held())

  /// Whether the timer runs.
  static var isRunning: Bool { held.withLock { $0.timer != nil } }

  static func add(_ claim: PartialClaim) {
    held.withLock { held in
      held.claims[ObjectIdentifier(claim)] = claim
      guard held.timer == nil else { return }
      let timer = DispatchSource.makeTimerSource(queue: queue)
      timer.schedule(deadline: .now() + .seconds(interval), repeating: .seconds(interval), leeway: .seconds(1))
      timer.setEventHandler { renewAll() }
      timer.activate()
      held.timer = timer
    }
  }

  static func remove(_ claim: PartialClaim) {
    held.withLock { held in
      held.claims[ObjectIdentifier(claim)] = nil
      guard held.claims.isEmpty else { return }
      held.timer?.cancel()
      held.timer = nil
    }
  }

  /// Renews each claim; a slow file system does not keep others from claiming meanwhile.
  static func renewAll() {
    for claim in held.withLock({ Array($0.claims.values) }) { claim.renew() }
  }
}
