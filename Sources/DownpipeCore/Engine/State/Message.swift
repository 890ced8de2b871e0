internal import Foundation

extension EngineState {
  /// What has happened.
  enum Message: Sendable {
    /// The work of a run has ended.
    case ended(Run, Outcome)
    /// A run that had lost its lease has been cleaned up.
    case cleanedUp(Run)
    /// A gate, by its number, has reported a rule.
    case reported(gate: Int, GateRule)
    /// The downloader is shut down, or its task was cancelled.
    case stop
    case turnEnded
    /// The ledger has answered an exchange.
    ///
    /// - Parameters:
    ///   - changed: The downloads that were added meanwhile, or changed by an addition.
    ///   - removed: The runs whose downloads were to be removed.
    case exchanged(Exchange.Answer, changed: Set<DownloadID>, removed: Set<ObjectIdentifier>)
    /// A timer of ``Effect/sleep(until:)`` has fired.
    case due(Duration)
    /// A timer of ``Effect/askAdmission(at:)`` has fired.
    case admissionDue(Duration)
    /// The storage has this much space that no running download has claimed; `nil` if it cannot tell.
    case room(Int64?)
    /// All messages so far have been received.
    case news(Audience, needsTurn: Bool)
  }

  /// Who waits for news.
  struct Audience: Sendable {
    /// Whether a download is watched.
    var isAnythingWatched = false
    /// Whether a download is watched, or a caller waits until the downloader is idle.
    var isAnythingAwaited = false
  }

  /// What has to be done.
  enum Effect: Sendable {
    /// Start a run, after an earlier one of the same download has ended.
    case start(Run, after: Run?)
    /// Tell that a run has ended and its outcome is saved.
    case end(Run, EndOfRun)
    /// Clean up after a run that has lost its lease, then answer with ``Message/cleanedUp(_:)``.
    case cleanUp(Run)
    /// Tell that the outcome of a run could not be saved.
    case announceUnsaved(Run, DownloadError)
    /// Do what waits for the ledger, then answer with ``Message/turnEnded``.
    case takeTurn
    case watch(WatchedGate)
    /// Answer with ``Message/due(_:)`` at the instant.
    case sleep(until: Duration)
    /// Answer with ``Message/admissionDue(_:)`` at the instant.
    case askAdmission(at: Duration)
    /// Tell the free space at intervals, while a download waits for it.
    case watchForRoom
    /// Look for changes by other processes, while they could matter.
    case lookForOthers
    /// Read the downloads that waited before there was a watcher.
    case fillReasons
    /// Compare the reasons of waiting downloads with the published ones after a while.
    case lookAtReasons
    /// Report progress and renew leases while something runs.
    case tick
  }

  /// What is told of a run that has ended.
  struct EndOfRun: Sendable {
    /// The state to publish; `nil` if it is not that of the download any longer.
    var published: DownloadState?
    /// The state that is followed; `nil` if it is not that of the download any longer.
    var followed: DownloadState?
    /// Whether the state is to be read from the ledger.
    var isUncertain = false
    /// The last known request of a download that may have been removed.
    var request: DownloadRequest?
  }
}
