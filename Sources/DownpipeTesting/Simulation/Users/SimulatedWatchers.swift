import DownpipeCore
import Synchronization

/// The watchers of one simulated process, with the last state that each has heard of.
final class SimulatedWatchers: Sendable {
  private struct State: Sendable {
    var last = 0
    /// The last state of each watcher whose events have not ended.
    var states: [Int: (id: DownloadID, state: DownloadState?)] = [:]
    /// The last state of each download, for each watcher of all downloads.
    var changes: [Int: [DownloadID: DownloadState]] = [:]
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

  /// Watches the changes of all downloads in a task of its own, until the downloader ends.
  func watchAll(_ downloader: Downloader) {
    let changes = downloader.changes()
    let watcher = state.withLock { state in
      state.last += 1
      state.changes[state.last] = [:]
      return state.last
    }
    let task = Task(executorPreference: executor) {
      for await batch in changes {
        self.world.timeline.note(
          .state, self.number, numbers: Int64(batch.statuses.count),
          text: "watcher \(watcher): \(batch.statuses.count) changes, \(batch.removed.count) removals")
        self.state.withLock { state in
          if batch.isSnapshot { state.changes[watcher] = [:] }
          for status in batch.statuses { state.changes[watcher]?[status.id] = status.state }
          for id in batch.removed { state.changes[watcher]?[id] = nil }
        }
      }
      self.state.withLock { $0.changes[watcher] = nil }
    }
    state.withLock { $0.tasks.append(task) }
  }

  /// The last states of the watchers whose events have not ended.
  var lastStates: [(id: DownloadID, state: DownloadState?)] {
    state.withLock { state in
      state.states.sorted { $0.key < $1.key }.map(\.value)
        + state.changes.sorted { $0.key < $1.key }.flatMap { _, states in
          states.sorted { $0.key.rawValue < $1.key.rawValue }.map { (id: $0.key, state: $0.value) }
        }
    }
  }

  func cancel() {
    for task in state.withLock({ $0.tasks }) { task.cancel() }
  }
}
