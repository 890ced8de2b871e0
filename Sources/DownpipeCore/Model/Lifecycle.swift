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
    /// The user paused it together with others.
    case pauseAll
    /// The user resumed it.
    case resume
    /// The user resumed what was paused together.
    case resumeTogether
    /// The user wants it from the beginning, whatever became of it.
    case restart
    /// The user cancelled it.
    case cancel
    /// The user deleted the finished file, and wants to know of it no more than that.
    case discard
    /// The same id was added again.
    case addedAgain
    /// The finished file is gone, and is wanted again.
    case artifactLost
  }

  /// The next phase; `nil` when the event means nothing in this phase.
  ///
  /// One event asks for more than a phase: ``Event/resumeTogether`` means only what was paused together.
  public static func next(_ phase: DownloadState.Phase, _ event: Event) -> DownloadState.Phase? {
    switch (phase, event) {
    case (.waiting, .leased): .transferring
    case (.waiting, .becameDue), (.waiting, .resume): .waiting
    case (.waiting, .pause), (.waiting, .pauseAll): .paused

    case (.transferring, .bytesComplete): .processing
    case (.processing, .stepsComplete): .finished
    case (.transferring, .failedForNow), (.processing, .failedForNow): .waiting
    case (.transferring, .failedForGood), (.processing, .failedForGood): .failed
    case (.transferring, .suspended), (.processing, .suspended): .waiting
    case (.transferring, .leaseLost), (.processing, .leaseLost): .waiting
    case (.transferring, .pause), (.processing, .pause): .paused
    case (.transferring, .pauseAll), (.processing, .pauseAll): .paused

    case (.paused, .resume), (.paused, .resumeTogether): .waiting
    case (.failed, .resume), (.failed, .addedAgain): .waiting
    case (.waiting, .restart), (.paused, .restart), (.failed, .restart), (.cancelled, .restart): .waiting
    case (.finished, .artifactLost): .waiting
    case (.finished, .discard): .cancelled

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
  /// - Returns: whether the event means anything to the record; nothing has changed otherwise.
  @discardableResult
  public mutating func apply(_ event: Lifecycle.Event) -> Bool {
    guard let next = Lifecycle.next(phase, event), event != .resumeTogether || isPausedTogether else { return false }
    if [.cancel, .discard, .restart, .artifactLost].contains(event) {
      // The bytes are gone, or are to go, and with them what was known of them.
      checkpoint = Checkpoint()
      steps = StepLog()
    }
    phase = next
    notBefore = nil
    isPausedTogether = event == .pauseAll
    if !next.isActive { owner = nil }
    switch event {
    case .leased:
      attempts += 1
    case .leaseLost:
      wasInterrupted = true
    case .becameDue, .bytesComplete, .failedForNow, .failedForGood, .suspended, .pause, .pauseAll:
      // What an interrupted run may have published is there until a later one finds it.
      break
    case .restart:
      forgetFailures()
      awaited = nil
      attempts = 0
      bytesFetched = 0
      resumedFrom = 0
    case .resume, .resumeTogether, .addedAgain:
      forgetFailures()
    case .artifactLost, .stepsComplete, .cancel, .discard:
      forgetFailures()
      awaited = nil
      wasInterrupted = false
    }
    return true
  }

  private mutating func forgetFailures() {
    error = nil
    consecutiveFailures = 0
    repeatedFailures = 0
  }
}
