/// Which running download is preempted when another one is started by hand and a limit is reached; see
/// ``Downloader/start(_:preempting:)``.
///
/// A preempted download keeps its bytes, goes back to waiting, and runs again when its turn comes. Only downloads whose
/// end makes room for the new one are preempted: one, or several when several limits are reached.
public enum Preemption: Sendable, Hashable {
  /// No download: the limit is exceeded by one until a running download ends.
  case none
  /// Of these, the download that has been running longest.
  case oldest
  /// The download that the scheduling policy ranks last. A download that was started by hand is only preempted if no
  /// other can be.
  case lowestPriority
}

/// Which downloads ``Downloader/resumeAll(_:only:)`` resumes.
public enum ResumeChoice: Sendable, Hashable {
  /// Every paused and every failed download.
  case pausedAndFailed
  /// The downloads that ``Downloader/pauseAll(_:)`` paused and that have not changed phase since. Downloads that were
  /// paused individually, or have failed, are not resumed.
  case pausedTogether
}
