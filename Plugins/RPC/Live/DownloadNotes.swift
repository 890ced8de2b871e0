import DownpipeCore

/// Tells from the states of downloads which of aria2's notifications are due, each once.
struct DownloadNotes {
  enum Note: String, Sendable, Hashable {
    case start = "aria2.onDownloadStart"
    case pause = "aria2.onDownloadPause"
    case stop = "aria2.onDownloadStop"
    case complete = "aria2.onDownloadComplete"
    case error = "aria2.onDownloadError"
  }

  /// The last note of downloads, as far as another one may follow or repeat it.
  private var last: [DownloadID: Note] = [:]
  /// Those that wait since.
  private var waiting: Set<DownloadID> = []
  /// Ended downloads in the order of their ends. The oldest is forgotten first.
  private var ended: [DownloadID] = []
  private static let most = 4096

  mutating func receive(_ status: DownloadStatus) -> [Note] { receive(status.state, of: status.id) }

  mutating func receive(_ state: DownloadState, of id: DownloadID) -> [Note] {
    let before = last[id]
    let notes: [Note]
    switch state {
    case .waiting:
      // The next start, pause or end is told again; a removal is the stop of a download that had started.
      if before != nil { waiting.insert(id) }
      return []
    case .transferring, .processing: notes = [.start]
    case .paused: notes = [.pause]
    // A small download may begin and end between two looks.
    case .finished: notes = before == .start || before == .complete ? [.complete] : [.start, .complete]
    case .failed: notes = [.error]
    case .cancelled: notes = [.stop]
    }
    guard let note = notes.last, note != before || waiting.contains(id) else { return [] }
    waiting.remove(id)
    last[id] = note
    if state.phase.isFinal {
      ended.append(id)
      if ended.count > Self.most { forgetOldest() }
    }
    return notes
  }

  /// The download is gone: one that had not ended was stopped.
  mutating func receiveRemoval(of id: DownloadID) -> [Note] {
    waiting.remove(id)
    return switch last.removeValue(forKey: id) {
    case .start, .pause: [.stop]
    default: []
    }
  }

  private mutating func forgetOldest() {
    for id in ended.prefix(Self.most / 2) {
      if let note = last[id], note != .start, note != .pause { last[id] = nil }
    }
    ended.removeFirst(Self.most / 2)
  }
}
