import DownpipeCore
import DownpipeJSON
import DownpipeServer

/// Changes of downloads as events of a stream (the server-sent events of HTML): the objects of `--json`, and `removed` with an
/// id. `incomplete` says that there were more changes than were kept for the client, which reads the queue again.
struct LiveEvents: Sendable {
  let downloader: Downloader

  func reply() -> ServerReply {
    let feed = EventFeed(downloader.changes(every: .milliseconds(250)))
    var reply = ServerReply(200, type: "text/event-stream; charset=utf-8")
    reply.body = .stream { await feed.next() }
    reply.isLast = true
    return reply
  }
}

/// The events for one client. Changes that it has not taken are merged by the downloader.
private actor EventFeed {
  private let changes: AsyncStream<DownloadChanges>.Iterator
  /// The state of each download, to tell news from progress.
  private var states: [DownloadID: DownloadState] = [:]
  private var isNew = true
  private static let mostStates = 10_000

  init(_ changes: AsyncStream<DownloadChanges>) { self.changes = changes.makeAsyncIterator() }

  /// Waits for the next events; `nil` when the downloader has ended.
  func next() async -> [UInt8]? {
    // The client knows that it is connected.
    if isNew {
      isNew = false
      return Array(": connected\n\n".utf8)
    }
    // A copy reads from the same stream.
    var changes = changes
    guard let batch = await changes.next(isolation: self) else { return nil }
    var text = ""
    if !batch.isComplete { text += Self.event(#"{"event":"incomplete"}"#) }
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
