/// The work on the files of finished downloads: one at a time for each download.
///
/// A file that is being renamed is at its new place before the ledger says so. Work that looks at the file in between
/// would find none.
struct FileWork: Sendable {
  /// The downloads on whose files work is done, with the work that waits for its end.
  private var waiters: [DownloadID: [CheckedContinuation<Void, Never>]] = [:]

  /// The number of downloads on whose files work is done.
  var count: Int { waiters.count }

  /// Begins work on the file of a download.
  /// - Returns: `false` if other work is done: it has to be waited for.
  mutating func begin(_ id: DownloadID) -> Bool {
    guard waiters[id] == nil else { return false }
    waiters[id] = []
    return true
  }

  /// Resumes the waiter when the work before it has ended; its own work has begun then.
  mutating func wait(_ waiter: CheckedContinuation<Void, Never>, for id: DownloadID) {
    waiters[id, default: []].append(waiter)
  }

  /// Ends work, and begins the next.
  mutating func end(_ id: DownloadID) {
    guard waiters[id]?.isEmpty == false, let next = waiters[id]?.removeFirst() else {
      waiters[id] = nil
      return
    }
    next.resume()
  }
}

extension Engine {
  /// Performs work on the file of a finished download, while no other work is done on it.
  ///
  /// - Parameter work: Gets whether it has waited, so that what was read of the download before may be out of date. The
  ///   work must not wait for the loop, which may wait for it.
  func withFile<Value: Sendable>(
    of id: DownloadID, _ work: (_ hasWaited: Bool) async throws -> Value
  ) async rethrows -> Value {
    let mustWait = !fileWork.begin(id)
    if mustWait { await withCheckedContinuation { fileWork.wait($0, for: id) } }
    defer { fileWork.end(id) }
    return try await work(mustWait)
  }
}
