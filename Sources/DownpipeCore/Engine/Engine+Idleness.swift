internal import Synchronization

// Waiting until there is nothing to do.
extension Engine {
  /// Returns when nothing waits and nothing runs, here or elsewhere.
  func waitUntilIdle() async throws {
    lastIdleWaiter += 1
    let number = lastIdleWaiter
    let result: Result<Void, any Error> = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if Task.isCancelled {
          continuation.resume(returning: .failure(CancellationError()))
        } else if isStopping {
          continuation.resume(returning: .failure(DownloadError(.shutDown, "the downloader was shut down")))
        } else {
          idleWaiters[number] = continuation
          wake()
        }
      }
    } onCancel: {
      // The actor's own loop resumes whoever was cancelled: no task of its own is needed for that.
      cancelled.withLock { _ = $0.insert(number) }
      wake()
    }
    cancelled.withLock { _ = $0.remove(number) }
    try result.get()
  }

  func releaseCancelledWaiters() {
    for number in cancelled.withLock({ $0 }) {
      idleWaiters.removeValue(forKey: number)?.resume(returning: .failure(CancellationError()))
    }
  }

  func settleIdle() async {
    guard !idleWaiters.isEmpty, running.isEmpty else { return }
    if ledgerFailures >= 5, let lastLedgerError { return finishIdleWaiters(.failure(lastLedgerError)) }
    guard let counts = try? await store.counts(tag: nil) else { return }
    let unfinished = [.waiting, .transferring, .processing].reduce(0) { $0 + counts[$1, default: 0] }
    if unfinished == 0, running.isEmpty { finishIdleWaiters(.success(())) }
  }

  func finishIdleWaiters(_ result: Result<Void, any Error>) {
    let waiters = idleWaiters.values
    idleWaiters = [:]
    for waiter in waiters { waiter.resume(returning: result) }
  }
}
