/// What becomes of a download when its id is added again.
public enum KnownDownload: String, Sendable, Hashable {
  /// It stays as it is: request, phase and place in the queue. One that has failed stays failed.
  case keep
  /// What differs from the request that was added last is taken over: what was changed since by other means, such as a
  /// priority, stays where the new request says the same as the last one. An unchanged request changes nothing. One that
  /// has failed waits again; what was paused or cancelled stays so.
  case update
}
