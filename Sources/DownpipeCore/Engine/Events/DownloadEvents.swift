/// The events of one download, beginning with its current state; see ``Download/events``.
public struct DownloadEvents: AsyncSequence, Sendable {
  /// A state, progress or other event of the download.
  public typealias Element = DownloadEvent
  /// `Never`: the sequence does not throw.
  public typealias Failure = Never

  let id: DownloadID
  let downloader: Downloader

  /// Returns an iterator, which subscribes to the events when its first element is requested.
  public func makeAsyncIterator() -> Iterator { Iterator(id: id, downloader: downloader) }

  /// The iterator of ``DownloadEvents``.
  public struct Iterator: AsyncIteratorProtocol {
    private let id: DownloadID
    private let downloader: Downloader
    private var stream: AsyncStream<DownloadEvent>.Iterator?
    private var isOver = false

    init(id: DownloadID, downloader: Downloader) {
      self.id = id
      self.downloader = downloader
    }

    /// Waits for the next event and returns it; returns `nil` when the sequence has ended or the task is cancelled.
    public mutating func next() async -> DownloadEvent? {
      await next(isolation: #isolation)
    }

    /// Waits for the next event and returns it; returns `nil` when the sequence has ended or the task is cancelled.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> DownloadEvent? {
      guard !isOver else { return nil }
      let event: DownloadEvent?
      if stream == nil {
        event = await subscribe()
      } else {
        event = await stream?.next(isolation: actor)
      }
      guard let event else {
        isOver = true
        return nil
      }
      switch event.kind {
      case .state(let state): isOver = state.phase.isFinal
      case .removed: isOver = true
      default: break
      }
      return event
    }

    /// Subscribes, and returns the present state; `nil` if it cannot be read.
    private mutating func subscribe() async -> DownloadEvent? {
      let hub = downloader.engine.hub
      let time = downloader.engine.options.time
      var latest: DownloadEvent?
      // What is told while the status is read may be older than the status, and the stream must not go back to it. The bound
      // is for a download that changes all the time.
      for _ in 0..<16 {
        // Subscribe before reading the status, so that no change in between is missed.
        let (events, watcher) = hub.events(of: id)
        stream = events.makeAsyncIterator()
        // From now on the loop has to notice what other processes do to the download.
        downloader.engine.context.mailbox.wake()
        let status = try? await downloader.status(of: id)
        latest = status.map {
          DownloadEvent($0.request, .state($0.state), date: time.date, instant: time.now, isOwn: false)
        }
        if status == nil || hub.note(status?.state, of: id, by: watcher) { break }
      }
      return latest
    }
  }
}
