import Foundation
import Synchronization

@testable import DownpipeBackgroundURLSession

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Tasks that only record their calls.
final class FakeTasks: DownloadTasks {
  struct State {
    var started: [(URLRequest, String)] = []
    var cancelled: [Int] = []
    var waiters: [(Int, CheckedContinuation<Void, Never>)] = []
  }
  let state = Mutex(State())

  func begin(_ channel: BackgroundChannel) {}
  func resume(_ task: Int) {}
  func cancel(_ task: Int) { state.withLock { $0.cancelled.append(task) } }
  func start(_ request: URLRequest, description: String) -> Int {
    let (number, due) = state.withLock { state in
      state.started.append((request, description))
      let count = state.started.count
      let due = state.waiters.filter { $0.0 <= count }
      state.waiters.removeAll { $0.0 <= count }
      return (count, due)
    }
    for (_, waiter) in due { waiter.resume() }
    return number
  }

  func untilStarted(_ count: Int) async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if state.started.count < count { state.waiters.append((count, continuation)) }
        return state.started.count >= count
      }
      if isThere { continuation.resume() }
    }
  }
}
