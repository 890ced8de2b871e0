extension EngineState {
  /// What has happened.
  enum Event: Sendable {
    /// The work of a run has ended.
    case ended(Run, Outcome)
    /// A run that the ledger had refused has been cleaned up.
    case cleanedUp(Run)
    /// A gate, by its number, has reported a rule.
    case reported(gate: Int, GateRule)
    /// The downloader is shut down, or its task was cancelled.
    case stop
    case called(Call)
    /// Downloads are to be added.
    case addition(Addition)
    /// The caller with this number does not wait any longer.
    case cancelledCall(Int)
    /// The turn decides what is done next: ``EngineState/job``.
    case turnGoesOn
    /// The job of the turn has ended.
    case performed(Job.Conclusion)
    case turnEnded
    /// An errand has ended, with what its command decides next and what it has changed.
    case errandEnded(Errand, AnyDecision?, Changes)
    /// The ledger has answered an exchange.
    ///
    /// - Parameter changed: The downloads that were added meanwhile, or changed by an addition.
    case exchanged(Exchange.Answer, changed: Set<DownloadID>)
    /// A timer has fired that was set for an instant.
    case fired(Timer, Duration)
    /// The storage has this much space that no running download has claimed; `nil` if it cannot tell.
    case room(Int64?)
    /// Changes by other processes were looked for. A further change may matter here or not; `nil` if the ledger cannot
    /// tell of any.
    case lookedForOthers(mayMatter: Bool?)
    /// Leases were renewed, or the loop begins: the downloads of dead owners are reclaimed, refused copies are removed, and the next
    /// maintenance is set.
    case maintained
    /// Other users of the ledger have released, changed or added downloads, or made them due.
    case changedByOthers
    /// Whether downloads may be queued, as far as the ledger tells.
    case queue(mayExist: Bool)
    /// The ledger ranks by the pipeline's policy.
    case ranked
    /// Renames were finished before the loop began.
    case changed(Changes)
    /// The ledger has failed, which those are told who wait until the downloader is idle.
    case ledgerFailed(DownloadError)
    case replaced(Replacement)
    /// All runs are stopped, and no download starts.
    case suspended
    /// A later call for a suspension wins: ``EngineState/Mode/suspensions`` is its number.
    case suspensionEnds
    /// - Parameter isFirst: Whether the downloader was suspended from the start: interrupted renames are finished now.
    case suspensionEnded(call: Int, isFirst: Bool)
    case awaitsIdleness(Completion)
    case awaitsIdlenessNoLonger(Completion)
    /// The loop has ended.
    case over
    /// All events so far have been received.
    case news(Audience, needsTurn: Bool)
  }

  /// Who waits for news.
  struct Audience: Sendable {
    /// Whether a download is watched.
    var isAnythingWatched = false
    /// Whether a download is watched, or a caller waits until the downloader is idle.
    var isAnythingAwaited = false
  }
}
