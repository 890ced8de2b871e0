import DownpipeCore
import DownpipeJSON
import DownpipeServer
import Synchronization

/// Changes of downloads as events of a stream (the server-sent events of HTML): the objects of `--json`, and `removed` with an
/// id. `incomplete` says that there were more changes than were kept for the client, or by others: it reads the queue again.
/// `reasons` says that downloads may wait for other reasons: it asks for those that it shows.
struct LiveEvents: Sendable {
  let downloader: Downloader
  let time: any TimeSource

  func reply() -> ServerReply {
    // The client has read the queue itself.
    let changes = downloader.changes(every: .milliseconds(250), beginningWithSnapshot: false)
    let feed = EventFeed(changes, time: time)
    var reply = ServerReply(200, type: "text/event-stream; charset=utf-8")
    reply.body = .stream { await feed.next() }
    reply.isLast = true
    return reply
  }
}

/// The events for one client. Changes that it has not taken are merged by the downloader.
private actor EventFeed {
  private enum Item {
    case batch(DownloadChanges)
    /// Nothing has changed for a while: a write shows whether the client is there.
    case silence
  }

  private let items: AsyncStream<Item>.Iterator
  /// Asks for the next changes.
  private let wishes: AsyncStream<Void>.Continuation
  /// The state of each download, to tell news from progress.
  private var states: [DownloadID: DownloadState] = [:]
  private var isNew = true
  private let silenceWaits = Flag()
  private static let mostStates = 10_000
  private static let longestSilence: Duration = .seconds(15)

  init(_ changes: AsyncStream<DownloadChanges>, time: any TimeSource) {
    let (items, continuation) = AsyncStream<Item>.makeStream()
    let (asked, wishes) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    self.items = items.makeAsyncIterator()
    self.wishes = wishes
    // Both end with the stream, which the feed owns.
    let pump = Task {
      var changes = changes.makeAsyncIterator()
      for await _ in asked {
        guard let batch = await changes.next(isolation: nil) else { break }
        continuation.yield(.batch(batch))
      }
      continuation.finish()
    }
    let clock = Task { [silenceWaits] in
      while (try? await time.sleep(for: Self.longestSilence, purpose: .eventSilence)) != nil {
        // One at a time, as of the changes.
        if !silenceWaits.set(true) { continuation.yield(.silence) }
      }
    }
    continuation.onTermination = { _ in
      wishes.finish()
      pump.cancel()
      clock.cancel()
    }
    wishes.yield()
  }

  /// Waits for the next events; `nil` when the downloader has ended.
  func next() async -> [UInt8]? {
    // The client knows that it is connected.
    if isNew {
      isNew = false
      return Array(": connected\n\n".utf8)
    }
    // A copy reads from the same stream.
    var items = items
    switch await items.next(isolation: self) {
    case .batch(let batch):
      wishes.yield()
      return events(batch)
    case .silence:
      silenceWaits.set(false)
      return Array(": nothing has changed\n\n".utf8)
    case nil: return nil
    }
  }

  private func events(_ batch: DownloadChanges) -> [UInt8] {
    var text = ""
    if !batch.isComplete { text += Self.event(#"{"event":"incomplete"}"#) }
    if batch.reasonsMayHaveChanged { text += Self.event(#"{"event":"reasons"}"#) }
    for status in batch.statuses {
      let isNews = states[status.id] != status.state
      if states.count >= Self.mostStates { states = [:] }
      states[status.id] = status.state.phase.isFinal ? nil : status.state
      let url = status.request.url.redacted
      text += Self.event(isNews ? StatusLine.state(status, url: url) : StatusLine.progress(status, url: url))
    }
    for id in batch.removed {
      states[id] = nil
      let object: JSONObject = ["event": "removed", "id": id.rawValue]
      text += Self.event(object.json)
    }
    return Array(text.utf8)
  }

  private static func event(_ json: String) -> String { "data: \(json)\n\n" }
}

/// A flag of several tasks.
private final class Flag: Sendable {
  private let value = Atomic(false)

  /// - Returns: What it was before.
  @discardableResult
  func set(_ new: Bool) -> Bool { value.exchange(new, ordering: .relaxed) }
}

extension SleepPurpose {
  /// Until a client of events is told that nothing has changed.
  static let eventSilence = SleepPurpose("eventSilence")
}
