public import DownpipeCore

/// An observer that keeps what it sees, and lets a test wait for it.
///
/// ```swift
/// let observer = RecordingObserver()
/// let downloader = try await Downloader { source; FakeStorage(); observer }
/// await observer.wait { events in events.contains { $0.kind == .state(.paused) } }
/// ```
public final class RecordingObserver: Observer {
  private struct State {
    var events: [DownloadEvent] = []
    var hasEnded = false
  }

  private let state = Watched(State())
  private let capacity: Int

  /// Makes an observer that keeps the latest `capacity` events.
  public init(capacity: Int = 100_000) {
    self.capacity = max(1, capacity)
  }

  /// What was seen, in order.
  public var events: [DownloadEvent] { state.value.events }

  /// What was seen of one download, in order.
  public func events(of id: DownloadID) -> [DownloadEvent.Kind] {
    state.value.events.filter { $0.id == id }.map(\.kind)
  }

  /// The states one download was seen in, in order.
  public func states(of id: DownloadID) -> [DownloadState] {
    events(of: id).compactMap { if case .state(let state) = $0 { state } else { nil } }
  }

  /// Whether the sequence of events has ended, as it does at the downloader's shutdown.
  public var hasEnded: Bool { state.value.hasEnded }

  /// Waits until what was seen meets a condition, which is asked after each event and must be quick.
  /// Returns early when the events end or the waiting task is cancelled.
  ///
  /// - Returns: whether the condition was met.
  @discardableResult
  public func wait(until condition: @escaping @Sendable ([DownloadEvent]) -> Bool) async -> Bool {
    await state.wait { $0.hasEnded || condition($0.events) }
    return condition(events)
  }

  /// Waits until a download was seen in a state of the phase; the same as ``wait(until:)`` otherwise.
  @discardableResult
  public func wait(for id: DownloadID, toBe phase: DownloadState.Phase) async -> Bool {
    await wait { events in
      events.contains { event in
        if event.id == id, case .state(let state) = event.kind { state.phase == phase } else { false }
      }
    }
  }

  /// Records until the sequence ends.
  public func observe(_ events: AsyncStream<DownloadEvent>) async {
    for await event in events {
      state.update { state in
        if state.events.count >= capacity { state.events.removeFirst(state.events.count - capacity + 1) }
        state.events.append(event)
      }
    }
    state.update { $0.hasEnded = true }
  }
}
