extension EngineState {
  /// What has to be done.
  enum Action: Sendable {
    /// Start a run, after an earlier one of the same download has ended.
    case start(Run, after: Run?)
    /// Tell that a run has ended and its outcome is saved, with the state to publish; `nil` if it is not that of the download
    /// any longer.
    case end(Run, published: DownloadState?)
    /// Clean up after a run that has lost its lease, then answer with ``Event/cleanedUp(_:)``.
    case cleanUp(Run)
    /// Tell that the outcome of a run could not be saved.
    case announceUnsaved(Run, DownloadError)
    /// Perform the jobs of ``EngineState/nextJob(at:)``, then answer with ``Event/turnEnded``.
    case takeTurn
    /// Perform an errand, then answer with ``Event/errandEnded(_:_:_:)``.
    case perform(Errand)
    case watch(WatchedGate)
    /// Answer with ``Event/fired(_:_:)`` at the instant.
    case sleep(until: Duration, Timer)
    /// Answer with ``Event/room(_:)``.
    case askRoom
    /// Look for changes by other processes, then answer with ``Event/lookedForOthers(mayMatter:)``.
    case lookForOthers
    case publish(Publication)
    /// Publish the state of a run again, because its request has changed.
    case announcePresentState(Run)
    /// Let callers go on.
    case answer([Answer])
    /// Start to lease shares of rates if a policy needs them.
    case leaseSharedRates
    /// Tell how far the running downloads have come, and stop those that are too slow or whose leases end.
    case tickRuns
    case renewLeases
    /// Renew leases, then answer with ``Event/maintained``.
    case maintain
    /// Stop the session of a replaced source.
    case stop(any SourceSession)
  }
}
