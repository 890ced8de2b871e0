import Downpipe
import DownpipeTesting
import Foundation
import Synchronization

@testable import ExpiringLinks

/// A clock that advances only when a server sends, by the time that sending would take.
///
/// As an observer it waits until the client has the bytes of an answer before the server closes the connection, because
/// bytes in transit may be lost when a connection breaks.
final class TestTime: Observer {
  private struct State {
    var date = Date(timeIntervalSince1970: 1_769_860_800)
    var ends: [(byte: Int64, gate: ServerGate)] = []
    var refreshes = 0
  }

  private let state = Mutex(State())

  /// The number of links that the client has renewed.
  var refreshes: Int { state.withLock(\.refreshes) }

  var serverTime: ServerTime {
    ServerTime(
      now: { self.state.withLock(\.date) },
      send: { reply, bytes, speed in
        let gate = ServerGate()
        var reply = reply
        self.state.withLock { state in
          state.date += Double(bytes) / Double(speed)
          for case .content(_, let range) in reply.steps { state.ends.append((range.upperBound, gate)) }
        }
        reply.steps.insert(.hold(gate), at: reply.steps.count - 1)
        return reply
      })
  }

  func observe(_ events: AsyncStream<DownloadEvent>) async {
    for await event in events {
      switch event.kind {
      case .linkRefreshed: state.withLock { $0.refreshes += 1 }
      case .progress(let progress):
        let reached = state.withLock { state in state.ends.filter { $0.byte <= progress.received } }
        for end in reached { end.gate.open() }
      default: break
      }
    }
  }
}
