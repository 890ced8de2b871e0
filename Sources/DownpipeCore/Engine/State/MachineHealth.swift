/// Whether this machine can download. After a fault of its own nothing starts for a while; then one download tries.
struct MachineHealth: Sendable {
  /// What may start now.
  enum Verdict: Sendable, Hashable { case all, one, none }

  private static let firstPause: Duration = .seconds(5)
  private static let longestPause: Duration = .seconds(300)

  /// What the machine lacks, by the latest download that has found it; `nil` while nothing is known to be wrong.
  private(set) var fault: DownloadError?
  /// The download that tries.
  private(set) var trial: DownloadID?
  private var end = Duration.zero
  private var pause = Duration.zero

  func verdict(at now: Duration) -> Verdict {
    if fault == nil { .all } else if now < end || trial != nil { .none } else { .one }
  }

  /// Notes that a download has found a fault of the machine.
  /// - Returns: When one may try again.
  mutating func failed(_ id: DownloadID, _ error: DownloadError, at now: Duration) -> Duration {
    // Those that ran beside it say the same once more.
    let isNew = fault == nil || now >= end
    fault = error
    if trial == id { trial = nil }
    guard isNew else { return end }
    pause = min(max(pause * 2, Self.firstPause), Self.longestPause)
    end = now + pause
    return end
  }

  /// Notes that a download has started, which is the trial if one is needed.
  mutating func started(_ id: DownloadID) { if fault != nil, trial == nil { trial = id } }

  /// Notes that the work of a download has ended without a fault of the machine.
  mutating func ended(_ id: DownloadID, isFinished: Bool) {
    if isFinished { self = MachineHealth() } else if trial == id { trial = nil }
  }

  /// Notes that the trial receives bytes: the others go on. The next fault pauses longer, until a download finishes.
  mutating func receives() { (fault, trial) = (nil, nil) }
}

extension WaitingReason {
  /// Creates the reason of all downloads that wait after a fault of the machine, whichever of them has found it.
  init(machine fault: DownloadError) { self = .machine(code: fault.code, text: fault.reasonOfMachine) }
}

extension DownloadError {
  /// Why downloads wait after a fault of the machine.
  package var reasonOfMachine: String { "this machine pauses: \(message)" }
}
