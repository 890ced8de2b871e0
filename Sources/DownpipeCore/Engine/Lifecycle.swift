/// The lifecycle of a download: what each event means in each phase.
///
/// A pure table. A pair that is not in it is illegal and changes nothing.
public enum Lifecycle {
  /// Something that happens to a download.
  public enum Event: String, Sendable, Hashable, CaseIterable {
    /// A place was free, gates and limits allow it.
    case claimed
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
    /// Somebody paused it.
    case pause
    /// Somebody resumed it.
    case resume
    /// Somebody cancelled it.
    case cancel
    /// The same id was added again.
    case addedAgain
    /// The finished file is gone.
    case artifactLost
  }

  /// What has to be done on the way.
  public enum Effect: String, Sendable, Hashable {
    /// Begin an attempt.
    case startTransfer
    /// Begin with the steps.
    case startSteps
    /// End the work that is under way.
    case stopWork
    /// Give the place back to others.
    case freePlace
    /// Make it due at once, with all attempts.
    case makeDue
    /// Remove the bytes on disk.
    case removePartial
  }

  /// The next phase, and what to do; `nil` when the event means nothing in this phase.
  public static func next(
    _ phase: DownloadState.Phase, _ event: Event
  ) -> (phase: DownloadState.Phase, effects: Set<Effect>)? {
    switch (phase, event) {
    case (.waiting, .claimed): (.transferring, [.startTransfer])
    case (.waiting, .pause): (.paused, [])
    case (.waiting, .resume): (.waiting, [.makeDue])
    case (.waiting, .cancel): (.cancelled, [.removePartial])

    case (.transferring, .bytesComplete): (.processing, [.startSteps])
    case (.processing, .stepsComplete): (.finished, [.freePlace, .removePartial])

    case (.transferring, .failedForNow), (.processing, .failedForNow): (.waiting, [.freePlace])
    case (.transferring, .failedForGood), (.processing, .failedForGood): (.failed, [.freePlace])
    case (.transferring, .suspended), (.processing, .suspended): (.waiting, [.stopWork, .freePlace])
    case (.transferring, .pause), (.processing, .pause): (.paused, [.stopWork, .freePlace])
    case (.transferring, .cancel), (.processing, .cancel): (.cancelled, [.stopWork, .freePlace, .removePartial])

    case (.paused, .resume): (.waiting, [.makeDue])
    case (.paused, .cancel): (.cancelled, [.removePartial])

    case (.failed, .resume), (.failed, .addedAgain): (.waiting, [.makeDue])
    case (.failed, .cancel): (.cancelled, [.removePartial])
    case (.cancelled, .resume), (.cancelled, .addedAgain): (.waiting, [.makeDue])
    case (.finished, .artifactLost): (.waiting, [.makeDue])

    default: nil
    }
  }

  /// The phases in which an event means something.
  public static func phases(accepting event: Event) -> Set<DownloadState.Phase> {
    Set(DownloadState.Phase.allCases.filter { next($0, event) != nil })
  }
}
