/// The events that one watcher has not read yet, at most some.
///
/// When there are more, progress goes first, since later progress replaces it. If there is none, the oldest event goes, and
/// the watcher is told: ``DownloadEvent/Kind/missed(_:)`` comes in its place.
final class EventBuffer: Sendable {
  private struct State: Sendable {
    /// In their order; those before `first` have been read.
    var events: [DownloadEvent] = []
    var first = 0
    var progressCount = 0
    var missed = 0
    /// The latest event that was lost.
    var lost: DownloadEvent?
    var isFinished = false

    var count: Int { events.count - first }
    var hasNext: Bool { count > 0 || missed > 0 || isFinished }

    mutating func popFirst() -> DownloadEvent? {
      guard count > 0 else { return nil }
      let event = events[first]
      first += 1
      if event.isProgress { progressCount -= 1 }
      // Half of the array at most has been read, so that the cost of moving the rest is spread over the events.
      if first * 2 >= events.count {
        events.removeFirst(first)
        first = 0
      }
      return event
    }

    mutating func makeRoom() {
      if progressCount > 0 {
        events = events[first...].filter { !$0.isProgress }
        (first, progressCount) = (0, 0)
      } else if let event = popFirst() {
        missed += 1
        lost = event
      }
    }

    mutating func next() -> DownloadEvent? {
      guard let event = lost else { return popFirst() }
      defer { (missed, lost) = (0, nil) }
      return DownloadEvent(event.request, .missed(missed), date: event.date, instant: event.instant, isOwn: event.isOwn)
    }
  }

  private let capacity: Int
  private let state = Monitor(State())

  /// Creates a buffer for at most `capacity` events.
  init(capacity: Int) { self.capacity = capacity }

  func append(_ event: DownloadEvent) {
    state.update { state in
      guard !state.isFinished else { return }
      if state.count >= capacity {
        if event.isProgress, state.progressCount == 0 { return }
        state.makeRoom()
      }
      state.events.append(event)
      if event.isProgress { state.progressCount += 1 }
    }
  }

  /// Whether there is no event to read now.
  var isEmpty: Bool { state.read { $0.count == 0 && $0.missed == 0 } }

  /// Ends the reading after the events that are left.
  func finish() { state.update { $0.isFinished = true } }

  /// Waits for the next event; `nil` after the last one, and if the task is cancelled while there is none.
  func next() async -> DownloadEvent? {
    while true {
      if let event = state.update({ $0.next() }) { return event }
      // Another reader may have been faster.
      guard !state.read(\.isFinished), (try? await state.wait(until: \.hasNext)) != nil else { return nil }
    }
  }
}

extension DownloadEvent {
  /// Whether a later event of the same kind replaces this one.
  var isProgress: Bool {
    switch kind {
    case .progress, .stepProgress: true
    default: false
    }
  }
}
