/// Who gives way to a download that is started by hand when a limit is reached; see ``Downloader/start(_:preempting:)``.
///
/// Those that give way keep their bytes, wait for their turn, and go on by themselves.
public enum Preemption: Sendable, Hashable {
  /// None: one more runs than the limit says, until one of them has ended.
  case none
  /// The one that was started first.
  case oldest
  /// The one that the scheduling policy puts last; those that were started by hand come after the others.
  case lowestPriority
}

/// Which downloads go on with ``Downloader/resumeAll(_:tag:)``.
public enum ResumeChoice: Sendable, Hashable {
  /// What is paused, and what has failed.
  case pausedAndFailed
  /// What the last ``Downloader/pauseAll(tag:)`` paused, as far as it has not been touched since: not what was paused by
  /// itself before, or has failed.
  case pausedTogether
}
