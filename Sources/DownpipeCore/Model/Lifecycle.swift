/// The lifecycle of a download: the effect of each event in each phase.
///
/// It is a pure table, which the engine and every ledger follow. An event without an entry for a phase has no effect in
/// it.
@_spi(Ledger) public enum Lifecycle {
  /// An event in the life of a download.
  public enum Event: String, Sendable, Hashable, CaseIterable {
    /// An owner has leased the download.
    case leased
    /// The last byte is stored.
    case bytesComplete
    /// A step has found that bytes are wrong, and they are fetched again.
    case bytesWrong
    /// The last step has finished, and the artifact is published.
    case stepsComplete
    /// The attempt failed, and another one follows.
    case failedForNow
    /// The attempt failed, and no other one follows.
    case failedForGood
    /// The run was stopped and continues later: a gate closed, a limit was lowered, or the downloader shuts down.
    case suspended
    /// The owner has ended, or has closed the ledger, without an outcome.
    case leaseLost
    /// What the download waited for is available.
    case becameDue
    /// The user paused the download.
    case pause
    /// The user paused the download together with others.
    case pauseAll
    /// The user resumed the download.
    case resume
    /// The user resumed the downloads that were paused together.
    case resumeTogether
    /// The user restarted the download from the first byte, or its request now asks for another file. The file of a
    /// finished download stays in place until the new one is published.
    case restart
    /// The server of a finished download is to be asked whether the file has changed. The file stays in place, and so do
    /// its checkpoint and steps in the record.
    case refresh
    /// The user cancelled the download.
    case cancel
    /// The user deleted the finished file; the record remains as cancelled.
    case discard
    /// The same id was added again.
    case addedAgain
    /// The finished file no longer exists and is wanted again.
    case artifactLost
  }

  /// Returns the phase after an event; `nil` when the event has no effect in this phase.
  ///
  /// Two events depend on more than the phase: ``Event/resumeTogether`` affects only downloads that were paused together,
  /// and ``Event/leased`` only downloads that wait for no other one; see ``DownloadRecord/waitsFor``.
  public static func next(_ phase: DownloadState.Phase, _ event: Event) -> DownloadState.Phase? {
    switch (phase, event) {
    case (.waiting, .leased): .transferring
    case (.waiting, .becameDue), (.waiting, .resume): .waiting
    case (.waiting, .pause), (.waiting, .pauseAll): .paused

    case (.transferring, .bytesComplete): .processing
    case (.processing, .bytesWrong): .transferring
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
    case (.finished, .restart), (.finished, .refresh): .waiting
    case (.finished, .artifactLost): .waiting
    case (.finished, .discard): .cancelled

    case (.waiting, .cancel), (.transferring, .cancel), (.processing, .cancel), (.paused, .cancel), (.failed, .cancel):
      .cancelled

    default: nil
    }
  }

  /// Returns the phases in which an event has an effect.
  public static func phases(accepting event: Event) -> Set<DownloadState.Phase> {
    Set(DownloadState.Phase.allCases.filter { next($0, event) != nil })
  }
}

extension DownloadRecord {
  /// Applies an event: sets the next phase, and clears the properties that the event makes obsolete.
  ///
  /// - Returns: `false`, and nothing has changed, when the event has no effect on the record.
  @discardableResult
  public mutating func apply(_ event: Lifecycle.Event) -> Bool {
    guard let next = Lifecycle.next(phase, event), event != .resumeTogether || isPausedTogether,
      event != .leased || waitsFor.isEmpty
    else { return false }
    if phase == .finished, event == .restart || event == .refresh { earlierArtifact = steps.artifact?.replaceable }
    if phase != .finished, event == .cancel || event == .restart { dropSteps() }
    if [.cancel, .discard, .restart, .artifactLost].contains(event) {
      // The bytes are or will be removed. What is known of the file tells it from a message about an error or an expired link.
      checkpoint = event == .cancel || event == .discard ? Checkpoint() : checkpoint.facts
      versions = VersionLog(hasOther: versions.hasOther, mayChange: event == .restart || event == .artifactLost)
      steps = StepLog()
      refreshing = nil
    }
    phase = next
    notBefore = nil
    isPausedTogether = event == .pauseAll
    if !next.isActive {
      owner = nil
      dropOutdatedWork()
    }
    switch event {
    case .leased:
      // A damaged ledger may have any number.
      if attempts < .max { attempts += 1 }
    case .leaseLost:
      wasInterrupted = true
    case .becameDue, .bytesComplete, .bytesWrong, .failedForNow, .failedForGood, .suspended, .pause, .pauseAll:
      // An interrupted run may have published an artifact; `wasInterrupted` stays set until a later run finds it.
      break
    case .restart:
      forgetFailures()
      awaited = nil
      attempts = 0
      bytesFetched = 0
      resumedFrom = 0
    case .refresh:
      forgetFailures()
      awaited = nil
      attempts = 0
      refreshing = .asking
    case .resume, .resumeTogether, .addedAgain:
      forgetFailures()
    case .artifactLost, .stepsComplete, .cancel, .discard:
      if event == .stepsComplete { versions = VersionLog() }
      forgetFailures()
      awaited = nil
      wasInterrupted = false
      refreshing = nil
      if event != .cancel { (earlierArtifact, leftArtifacts) = (nil, []) }
    }
    return true
  }

  /// Removes the failures, and the time of the next attempt that follows from them.
  mutating func forgetFailures() {
    error = nil
    notBefore = nil
    consecutiveFailures = 0
    repeatedFailures = 0
  }
}
