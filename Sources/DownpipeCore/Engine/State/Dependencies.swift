/// What the downloads do that others wait for, as far as it has been read from the ledger.
struct Dependencies: Sendable {
  typealias State = WaitingReason.Dependency

  /// The states of existing downloads; `nil` if the ledger was not read.
  private let states: [DownloadID: State]?

  /// Knows no state: every dependency counts as unfinished.
  static let unread = Dependencies(nil)

  /// Creates the states of the dependencies in `records`, which has all of those that exist.
  init(_ records: [DownloadRecord]?) {
    states = records.map { Dictionary($0.map { ($0.id, State($0.phase)) }) { $1 } }
  }

  /// Why a download waits, if another one has to finish first; otherwise `nil`.
  ///
  /// A dependency that needs a command is named before one that will finish without.
  func reason(for record: DownloadRecord) -> WaitingReason? {
    let all = record.waitsFor.sorted().map { ($0, state(of: $0)) }
    return (all.first { $0.1 != .unfinished } ?? all.first).map { .dependency($0.0, $0.1) }
  }

  private func state(of id: DownloadID) -> State {
    guard let states else { return .unfinished }
    return states[id] ?? .unknown
  }
}

extension WaitingReason.Dependency {
  fileprivate init(_ phase: DownloadState.Phase) {
    switch phase {
    case .paused: self = .paused
    case .cancelled: self = .cancelled
    case .failed: self = .failed
    // A dependency may finish after the record of the download that waits for it has been read.
    case .waiting, .transferring, .processing, .finished: self = .unfinished
    }
  }
}
