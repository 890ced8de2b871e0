internal import Synchronization

/// The rate policies in effect, with their sessions. Transfers ask them on the transport's threads.
final class LiveRates: Sendable {
  private struct Limit: Sendable {
    let id: String
    let session: any RateSession
  }

  private let limits: Mutex<[Limit]>
  /// Spares transfers the mutex while there is no limit.
  private let isEmpty: Atomic<Bool>

  init(_ policies: [any RatePolicy]) {
    limits = Mutex(policies.map { Limit(id: $0.id, session: $0.start()) })
    isEmpty = Atomic(policies.isEmpty)
  }

  /// Replaces the policy with the same id, or adds it.
  func replace(_ policy: any RatePolicy) {
    let limit = Limit(id: policy.id, session: policy.start())
    limits.withLock { limits in
      if let index = limits.firstIndex(where: { $0.id == policy.id }) {
        limits[index] = limit
      } else {
        limits.append(limit)
      }
    }
    isEmpty.store(false, ordering: .releasing)
  }

  /// - Returns: `false` if there is no such policy.
  func remove(id: String) -> Bool {
    limits.withLock { limits in
      guard let index = limits.firstIndex(where: { $0.id == id }) else { return false }
      limits.remove(at: index)
      isEmpty.store(limits.isEmpty, ordering: .releasing)
      return true
    }
  }

  /// The longest pause that a policy asks for.
  func pause(after bytes: Int, of id: DownloadID, _ candidate: Candidate, at now: @autoclosure () -> Duration)
    -> Duration
  {
    if isEmpty.load(ordering: .acquiring) { return .zero }
    let sessions = limits.withLock { $0.map(\.session) }
    let now = now()
    return sessions.map { $0.pause(after: bytes, of: id, candidate, at: now) }.max() ?? .zero
  }
}
