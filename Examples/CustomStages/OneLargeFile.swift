import Downpipe

/// A custom limit: of the files that are known to be large, at most one runs at a time, beside smaller ones.
///
/// A policy sees the sum of the running sizes, and not each size. So a large file also waits while small ones have as many
/// bytes together. A file of unknown size may start at any time, and may turn out to be large.
struct OneLargeFile: AdmissionPolicy {
  /// The size in bytes from which a file is large.
  var large: Int64 = 1_000_000_000

  func admit(_ candidate: Candidate, beside running: RunningDownloads) -> Admission {
    // While nothing runs, a file of any size must be able to start.
    guard running.total > 0, let size = candidate.size.bytes, size >= large, running.bytes >= large else {
      return .admitted
    }
    return .refused("the running downloads have \(running.bytes) bytes: a large file starts below \(large)")
  }
}
