/// Told what an engine decides, for simulations. It must be fast, and is called on any thread.
package struct EngineProbe: Sendable {
  /// A decision of the engine.
  package enum Moment: Sendable {
    /// A reply was compared with the bytes on disk.
    case planned(DownloadID, ResumePlan)
    /// The file is fetched from the start, beside the bytes on disk.
    case beganVersion(DownloadID)
    /// A run was told to stop, for a reason with this name.
    case stopped(DownloadID, reason: String)
    /// A run has ended with a fault of the machine.
    case gaveBack(DownloadID)
    /// A command has come to the engine. The note is made in the task of its caller.
    case called
    /// The engine's state receives an event.
    case received(EngineEvent)
  }

  let note: @Sendable (Moment) -> Void

  package init(_ note: @escaping @Sendable (Moment) -> Void) { self.note = note }
}

/// What has happened, as the engine's state receives it: for timelines. Printed without secrets.
package struct EngineEvent: Sendable, CustomStringConvertible {
  let event: EngineState.Event

  package var description: String { event.description }
  /// The download that it concerns alone; `nil` for others.
  package var id: DownloadID? { event.id }
  /// Whether it only drives the loop: nothing has happened.
  package var isOfLoop: Bool {
    switch event {
    case .turnGoesOn, .performed, .turnEnded, .news: true
    default: false
    }
  }
}

extension Downloader {
  /// The sizes of the engine's collections by their names. All are empty when there is no download.
  package var bookkeeping: [String: Int] {
    get async { await engine.bookkeeping }
  }
}

extension Engine {
  fileprivate var bookkeeping: [String: Int] {
    var sizes = state.slots.sizes
    sizes["commands"] = state.commands.count
    sizes["calls"] = state.commands.ready.count + state.additions.count
    sizes["errands"] = state.errands.count
    sizes["downloads that return"] = state.returning.count
    sizes["unpublished downloads"] = state.unpublished.count
    sizes["outcomes"] = state.outbox.count
    sizes["waits"] = state.waits.isAnythingMissing ? 1 : 0
    sizes["idle waiters"] = state.idleWaiters.isEmpty ? 0 : 1
    sizes["watched downloads"] = hub.watchedDownloads.count
    sizes["claims of room"] = context.room.count
    sizes["connections"] = context.connections.count
    return sizes
  }
}
