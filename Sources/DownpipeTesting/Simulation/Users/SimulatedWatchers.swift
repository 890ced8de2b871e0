import DownpipeCore
import Synchronization

/// The watchers of one simulated process, with the last state that each has heard of.
final class SimulatedWatchers: Sendable {
  private struct State: Sendable {
    var last = 0
    /// The last state of each watcher whose events have not ended.
    var states: [Int: (id: DownloadID, state: DownloadState?)] = [:]
    var tasks: [Task<Void, Never>] = []
  }
  private let state = Mutex(State())
  private let world: World
  private let executor: SimulatedExecutor
  private let number: Int

  init(_ world: World, _ executor: SimulatedExecutor, number: Int) {
    self.world = world
    self.executor = executor
    self.number = number
  }

  /// Watches a download in a task of its own, until its events end.
  func watch(_ id: DownloadID, of downloader: Downloader) async {
    guard let download = try? await downloader.download(id) else { return }
    let watcher = state.withLock { state in
      state.last += 1
      state.states[state.last] = (id, nil)
      return state.last
    }
    let task = Task(executorPreference: executor) {
      for await event in download.events {
        guard case .state(let new) = event.kind else { continue }
        self.world.timeline.note(.state, self.number, id, text: "watcher \(watcher): \(new)")
        self.state.withLock { $0.states[watcher]?.state = new }
      }
      self.state.withLock { $0.states[watcher] = nil }
    }
    state.withLock { $0.tasks.append(task) }
  }

  /// The last states of the watchers whose events have not ended.
  var lastStates: [(id: DownloadID, state: DownloadState?)] {
    state.withLock { $0.states.sorted { $0.key < $1.key }.map(\.value) }
  }

  func cancel() {
    for task in state.withLock({ $0.tasks }) { task.cancel() }
  }
}
