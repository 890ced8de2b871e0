import DownpipeCore
import Synchronization

/// Counts what a simulation has reached.
final class CoverageCounter: Sendable {
  private let state = Mutex<[String: Int]>([:])

  var counts: [String: Int] { state.withLock { $0 } }

  func count(_ what: String) { state.withLock { $0[what, default: 0] += 1 } }

  func note(_ moment: EngineProbe.Moment) {
    switch moment {
    case .planned(_, let plan):
      switch plan {
      case .append(_, let comparing): count(comparing > 0 ? "plan: append after comparing" : "plan: append")
      case .begin: count("plan: first bytes")
      case .replace(let error): count("plan: replace, \(error.code.rawValue)")
      case .alreadyComplete: count("plan: already complete")
      case .reject(let error): count("plan: reject, \(error.code.rawValue)")
      }
    case .beganVersion: count("another version begins")
    case .stopped(_, let reason): count("stop: \(reason)")
    case .gaveBack: count("a fault of the machine")
    case .called, .received: break
    }
  }
}
