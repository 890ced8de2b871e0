import DownpipeCore
import Synchronization

/// The lists that clients ask for each second, read once for all clients.
///
/// A list is read again after a command of a client, after a download has entered another phase, and after a second, because
/// another process may have changed the ledger.
final class ListCache: Sendable {
  private struct Entry {
    let statuses: Task<[DownloadStatus], any Error>
    let readAt: Duration
  }

  private struct State {
    var entries: [DownloadQuery: Entry] = [:]
    var phases: [DownloadID: DownloadState.Phase] = [:]
  }

  private let state = Mutex(State())
  private let downloader: Downloader
  private let time: any TimeSource
  private static let longest: Duration = .seconds(1)
  /// The most lists that are kept, and the most downloads whose phase is.
  private static let most = 32
  private static let mostPhases = 10_000

  init(_ downloader: Downloader, time: any TimeSource) {
    self.downloader = downloader
    self.time = time
  }

  /// Reads a list, or returns what was read for another client.
  func statuses(_ query: DownloadQuery) async throws -> [DownloadStatus] {
    let now = time.now
    let entry = state.withLock { state -> Entry in
      if let known = state.entries[query], now - known.readAt < Self.longest { return known }
      if state.entries.count >= Self.most { state.entries = [:] }
      // Not a part of the call: other calls wait for it, too. It ends with the reading.
      let entry = Entry(statuses: Task { [downloader] in try await downloader.statuses(query) }, readAt: now)
      state.entries[query] = entry
      return entry
    }
    do { return try await entry.statuses.value } catch {
      state.withLock { $0.entries[query] = nil }
      throw error
    }
  }

  /// Forgets all lists.
  func invalidate() { state.withLock { $0.entries = [:] } }

  /// Forgets all lists if a download has entered another phase, or is gone.
  func receive(_ event: DownloadEvent) {
    switch event.kind {
    case .state(let new):
      let phase = new.phase
      state.withLock { state in
        if state.phases.count >= Self.mostPhases { state.phases = [:] }
        if state.phases.updateValue(phase, forKey: event.id) != phase { state.entries = [:] }
        if phase.isFinal { state.phases[event.id] = nil }
      }
    case .removed:
      state.withLock { state in
        state.phases[event.id] = nil
        state.entries = [:]
      }
    case .missed:
      state.withLock { state in
        state.phases = [:]
        state.entries = [:]
      }
    default: break
    }
  }
}
