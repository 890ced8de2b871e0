/// The lifecycle of a download: what each event means in each phase.
///
/// A pure table, which the engine and every ledger follow. A pair that is not in it is illegal and changes nothing.
public enum Lifecycle {
  /// Something that happens to a download.
  public enum Event: String, Sendable, Hashable, CaseIterable {
    /// An owner has leased it.
    case leased
    /// The last byte is on disk.
    case bytesComplete
    /// The last step is done, and the artifact is published.
    case stepsComplete
    /// The attempt failed; there will be another.
    case failedForNow
    /// The attempt failed; there will be no other.
    case failedForGood
    /// A gate closed, a limit shrank, the downloader shuts down: go on later.
    case suspended
    /// Its owner is gone, or has closed the ledger, without an outcome.
    case leaseLost
    /// What it waited for is there.
    case becameDue
    /// The user paused it.
    case pause
    /// The user resumed it.
    case resume
    /// The user cancelled it.
    case cancel
    /// The same id was added again.
    case addedAgain
    /// The finished file is gone, and is wanted again.
    case artifactLost
  }

  /// The next phase; `nil` when the event means nothing in this phase.
  public static func next(_ phase: DownloadState.Phase, _ event: Event) -> DownloadState.Phase? {
    switch (phase, event) {
    case (.waiting, .leased): .transferring
    case (.waiting, .becameDue), (.waiting, .resume): .waiting
    case (.waiting, .pause): .paused

    case (.transferring, .bytesComplete): .processing
    case (.processing, .stepsComplete): .finished
    case (.transferring, .failedForNow), (.processing, .failedForNow): .waiting
    case (.transferring, .failedForGood), (.processing, .failedForGood): .failed
    case (.transferring, .suspended), (.processing, .suspended): .waiting
    case (.transferring, .leaseLost), (.processing, .leaseLost): .waiting
    case (.transferring, .pause), (.processing, .pause): .paused

    case (.paused, .resume): .waiting
    case (.failed, .resume), (.failed, .addedAgain): .waiting
    case (.cancelled, .resume), (.cancelled, .addedAgain): .waiting
    case (.finished, .artifactLost): .waiting

    case (.waiting, .cancel), (.transferring, .cancel), (.processing, .cancel), (.paused, .cancel), (.failed, .cancel):
      .cancelled

    default: nil
    }
  }

  /// The phases in which an event means something.
  public static func phases(accepting event: Event) -> Set<DownloadState.Phase> {
    Set(DownloadState.Phase.allCases.filter { next($0, event) != nil })
  }
}

extension DownloadRecord {
  /// Applies an event: the phase that follows, and what an event of its kind forgets.
  ///
  /// - Returns: whether the event means anything in the record's phase; nothing has changed otherwise.
  @discardableResult
  public mutating func apply(_ event: Lifecycle.Event) -> Bool {
    guard let next = Lifecycle.next(phase, event) else { return false }
    if phase == .cancelled || event == .artifactLost || event == .cancel {
      // The bytes are gone, and with them what was known of them.
      checkpoint = Checkpoint()
      steps = StepLog()
    }
    phase = next
    notBefore = nil
    if !next.isActive { owner = nil }
    switch event {
    case .leased:
      attempts += 1
    case .leaseLost:
      wasInterrupted = true
    case .becameDue, .bytesComplete, .failedForNow, .failedForGood, .suspended, .pause:
      // What an interrupted run may have published is there until a later one finds it.
      break
    case .resume, .addedAgain, .artifactLost, .stepsComplete, .cancel:
      error = nil
      consecutiveFailures = 0
      repeatedFailures = 0
      if event != .resume && event != .addedAgain {
        awaited = nil
        wasInterrupted = false
      }
    }
    return true
  }
}
