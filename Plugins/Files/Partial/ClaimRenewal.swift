import Dispatch
import Synchronization

/// Renews the claims of this process, all with one timer, which runs while the process holds a claim.
enum ClaimRenewal {
  /// The seconds between two renewals: two of them may fail.
  private static let interval = Int(PartialClaim.lease) / 3
  private static let queue = DispatchQueue(label: "downpipe.files.claims", qos: .utility)

  private struct Held {
    var claims: [ObjectIdentifier: PartialClaim] = [:]
    var timer: (any DispatchSourceTimer)?
  }

  private static let held = Mutex(Held())

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

  /// Renews each claim outside of the lock, so that a slow file system does not block new claims.
  static func renewAll() {
    for claim in held.withLock({ Array($0.claims.values) }) { claim.renew() }
  }
}
