import Downpipe
import DownpipeJSON
import Foundation

/// Decides which states are news: a state is news once, and again after it has changed.
struct StateNews {
  private struct Shown: Hashable {
    var phase: DownloadState.Phase
    var reason: String?
    var until: Int64?
  }

  private var shown: [DownloadID: Shown] = [:]

  /// Returns whether the state differs from the one before.
  ///
  /// Another reason to wait is a difference, and so is another time. A download that waits for its turn is no news
  /// until it has run: of a list of thousands nearly all wait for their turn.
  mutating func isNews(_ status: DownloadStatus) -> Bool {
    let reason = status.hindrance
    if status.state.phase == .waiting, reason == nil, shown[status.id] == nil { return false }
    // Rounded: a ledger keeps milliseconds.
    let until = reason?.until.map { Int64($0.timeIntervalSince1970.rounded()) }
    let state = Shown(phase: status.state.phase, reason: reason?.description, until: until)
    return shown.updateValue(state, forKey: status.id) != state
  }

  /// Frees the entry of a download that has ended.
  mutating func forget(_ id: DownloadID) { shown[id] = nil }
}

extension DownloadStatus {
  /// What the download waits for, other than a free slot.
  var hindrance: WaitingReason? {
    switch state {
    case .waiting(.turn), .waiting(.limit), .waiting(.preempted): nil
    case .waiting(let reason): reason
    default: nil
    }
  }
}
