import Downpipe
import Foundation

/// Tells which states are news: each is told once, and again only when it has changed.
struct StateNews {
  private struct Told: Hashable {
    var phase: DownloadState.Phase
    var reason: String?
    var until: Int64?
  }

  private var told: [DownloadID: Told] = [:]

  /// Takes a state in.
  /// - Returns: whether it differs from the last one of the download. Another reason for waiting is a difference, and so
  ///   is another time; waiting for a free place is one and the same state, whatever takes the place.
  mutating func isNews(_ status: DownloadStatus) -> Bool {
    var state = Told(phase: status.state.phase)
    if let reason = status.waitsBeyondItsTurn {
      state.reason = reason.description
      // The ledger's times are rounded.
      state.until = reason.until.map { Int64($0.timeIntervalSince1970.rounded()) }
    }
    return told.updateValue(state, forKey: status.id) != state
  }

  /// Whether anything was told of a download.
  func knows(_ id: DownloadID) -> Bool { told[id] != nil }

  /// The download is over.
  mutating func forget(_ id: DownloadID) { told[id] = nil }
}

extension DownloadStatus {
  /// What it waits for, where that is more than a free place among the running downloads.
  var waitsBeyondItsTurn: WaitingReason? {
    switch state {
    case .waiting(.turn), .waiting(.limit): nil
    case .waiting(let reason): reason
    default: nil
    }
  }
}

extension WaitingReason {
  /// When it is tried again at the latest, where that is known.
  var until: Date? {
    switch self {
    case .retry(let date, _), .missing(_, let date, _): date
    default: nil
    }
  }
}
