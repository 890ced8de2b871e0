import Downpipe
import Foundation

/// A custom gate: between two hours of the day (UTC) it allows only downloads that a user has started.
struct QuietHours: Gate {
  let from: Int
  let to: Int
  var time: any TimeSource = SystemTime()

  func watch(_ publish: @escaping @Sendable (GateRule) -> Void) async throws {
    while true {
      let second = Int(time.date.timeIntervalSince1970.rounded(.down)) % 86_400
      let hour = second / 3600
      let isQuiet = from <= to ? (from..<to).contains(hour) : hour >= from || hour < to
      publish(
        .each { download in
          isQuiet && download.intent != .userInitiated
            ? .closed("QuietHours: it is between \(from):00 and \(to):00 UTC") : .open
        })
      try await time.sleep(for: .seconds(3600 - second % 3600))
    }
  }
}
