public import DownpipeCore

/// An observer that records events and lets a test wait for them.
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

  /// Creates an observer that keeps the latest `capacity` events.
  public init(capacity: Int = 100_000) {
    self.capacity = max(1, capacity)
  }

  /// The events so far, in order.
  public var events: [DownloadEvent] { state.value.events }

  /// The events of one download so far, in order.
  public func events(of id: DownloadID) -> [DownloadEvent.Kind] {
    state.value.events.filter { $0.id == id }.map(\.kind)
  }

  /// The states of one download so far, in order.
  public func states(of id: DownloadID) -> [DownloadState] {
    events(of: id).compactMap { if case .state(let state) = $0 { state } else { nil } }
  }

  /// Whether the sequence of events has ended, as it does when the downloader shuts down.
  public var hasEnded: Bool { state.value.hasEnded }

  /// Waits until the events so far meet a condition, which is evaluated after each event and must be fast.
  /// Returns early when the events end or the waiting task is cancelled.
  ///
  /// - Returns: Whether the condition was met.
  @discardableResult
  public func wait(until condition: @escaping @Sendable ([DownloadEvent]) -> Bool) async -> Bool {
    await state.wait { $0.hasEnded || condition($0.events) }
    return condition(events)
  }

  /// Waits for a state event of a download with the given phase, like ``wait(until:)``.
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
