import Dispatch
import DownpipeCore
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// One URLSession and the transfers that run in it.
final class TransferSession: SourceSession {
  private struct State {
    var transfers: [Int: TaskTransfer] = [:]
    var isClosing = false
    var isInvalid = false
    var isWatching = false
    /// Resumed when no transfer is left.
    var idleWaiter: CheckedContinuation<Void, Never>?
    /// Resumed when the session is invalid.
    var invalidWaiter: CheckedContinuation<Void, Never>?
  }

  let configuration: URLSessionSource.Configuration
  private let state = Mutex(State())
  private let session: URLSession
  /// Runs every call that waits for Foundation's own queue: a sink may block that queue, and the threads of Swift's
  /// concurrency must not wait for it. It is serial, so that no task is made in an invalid session.
  private let control = DispatchQueue(label: "downpipe.urlsession.control")
  private let clock = DispatchQueue(label: "downpipe.urlsession.clock")
  private let interval: DispatchTimeInterval

  init(_ configuration: URLSessionSource.Configuration, connectionsPerHost: Int) {
    self.configuration = configuration
    let delegate = SessionDelegate()
    session = URLSession(
      configuration: configuration.sessionConfiguration(connectionsPerHost: connectionsPerHost), delegate: delegate,
      delegateQueue: makeDelegateQueue())
    // A time limit is detected at most an eighth of it, or a second, late.
    let shortest = min(
      configuration.connectTimeLimit, configuration.idleTimeLimit, configuration.totalTimeLimit ?? .seconds(3600))
    interval = .milliseconds(max(10, min(1000, Int(shortest / .milliseconds(8)))))
    delegate.session.withLock { $0 = self }
  }

  func open(_ request: SourceRequest) async throws -> SourceReply {
    try await Opening(session: self, ownsSession: false).open(request)
  }

  // MARK: Transfers

  /// Makes and starts the task of a transfer, asynchronously.
  func begin(_ transfer: TaskTransfer, _ request: URLRequest) {
    control.async { [self] in
      guard !state.withLock({ $0.isClosing }) else {
        transfer.fail(DownloadError(.shutDown, "the source was stopped"))
        return
      }
      // A transfer that was cancelled meanwhile needs no task.
      guard !transfer.isOver else { return }
      let task = session.dataTask(with: request)
      let mustWatch = state.withLock { state in
        state.transfers[task.taskIdentifier] = transfer
        defer { state.isWatching = true }
        return !state.isWatching
      }
      transfer.bind(task)
      task.resume()
      if mustWatch { watch() }
    }
  }

  /// Cancels a task, asynchronously.
  func cancel(_ task: URLSessionTask) { control.async { task.cancel() } }

  func transfer(of task: URLSessionTask) -> TaskTransfer? {
    state.withLock { $0.transfers[task.taskIdentifier] }
  }

  /// Removes and returns the transfer of a task that has ended.
  func remove(_ task: URLSessionTask) -> TaskTransfer? {
    let (transfer, waiter) = state.withLock { state in
      let transfer = state.transfers.removeValue(forKey: task.taskIdentifier)
      let isIdle = state.transfers.isEmpty
      return (transfer, isIdle ? state.idleWaiter.take() : nil)
    }
    waiter?.resume()
    return transfer
  }

  /// Checks the time limits until no transfer is left.
  private func watch() {
    clock.asyncAfter(deadline: .now() + interval) { [weak self] in
      guard let self else { return }
      let transfers = self.state.withLock { state in
        state.isWatching = !state.transfers.isEmpty
        return Array(state.transfers.values)
      }
      let now = ContinuousClock.now
      for transfer in transfers { transfer.checkTime(now) }
      if !transfers.isEmpty { self.watch() }
    }
  }

  // MARK: Ending

  /// Rejects new transfers and ends the session after its last task. Returns immediately.
  func finish() {
    state.withLock { $0.isClosing = true }
    control.async { [session] in session.finishTasksAndInvalidate() }
  }

  /// Fails every transfer and returns when the session is invalid.
  func stop() async {
    let transfers = state.withLock { state in
      state.isClosing = true
      return Array(state.transfers.values)
    }
    for transfer in transfers { transfer.fail(DownloadError(.shutDown, "the source was stopped")) }
    await drainControl()
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        if !state.transfers.isEmpty { state.idleWaiter = continuation }
        return state.transfers.isEmpty
      }
      if isIdle { continuation.resume() }
    }
    finish()
    await withCheckedContinuation { continuation in
      let isInvalid = state.withLock { state in
        if !state.isInvalid { state.invalidWaiter = continuation }
        return state.isInvalid
      }
      if isInvalid { continuation.resume() }
    }
  }

  /// Waits for a `begin` that was called before the session started to close.
  private func drainControl() async {
    await withCheckedContinuation { continuation in control.async { continuation.resume() } }
    let late = state.withLock { Array($0.transfers.values) }
    for transfer in late { transfer.fail(DownloadError(.shutDown, "the source was stopped")) }
  }

  /// The session does not call its delegate again.
  func didBecomeInvalid() {
    let waiter = state.withLock { state in
      state.isInvalid = true
      return state.invalidWaiter.take()
    }
    waiter?.resume()
  }
}
