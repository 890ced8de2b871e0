/// A handle on one download: its id and the downloader it belongs to. Cheap to copy and to throw away.
public struct Download: Sendable, Identifiable {
  /// The download's name.
  public let id: DownloadID
  /// Whether adding it made it, or found one that was there.
  public let isNew: Bool
  private let downloader: Downloader

  struct Ticket: Sendable {
    let id: DownloadID
    let isNew: Bool
  }

  init(id: DownloadID, isNew: Bool, downloader: Downloader) {
    self.id = id
    self.isNew = isNew
    self.downloader = downloader
  }

  /// How it stands.
  /// - Throws: ``DownloadError`` with `.removed` when it is gone, or `.ledger`.
  public var status: DownloadStatus {
    get async throws {
      guard let status = try await downloader.status(of: id) else { throw gone }
      return status
    }
  }

  /// What happens to it. Whoever comes late gets the present state first; the sequence ends with the state
  /// `finished`, `failed` or `cancelled`, with `removed`, when another user of the ledger removes it, and when the
  /// downloader shuts down.
  ///
  /// A reader that is slow misses events, never the last one.
  public var events: DownloadEvents { DownloadEvents(id: id, downloader: downloader) }

  /// The artifact, once it is finished.
  ///
  /// Cancelling the waiting task ends the wait, not the download.
  /// - Throws: ``DownloadError`` when it fails, is cancelled or removed, or the downloader shuts down;
  ///   `CancellationError`.
  public var value: Artifact {
    get async throws {
      while true {
        for await event in events {
          if case .state(let state) = event.kind, let end = try state.artifact { return end }
        }
        try Task.checkCancellation()
        // It is gone, the downloader ends, or its record could not be read: asked again, that is an error or an answer.
        guard let status = try await downloader.status(of: id) else { throw gone }
        if let end = try status.state.artifact { return end }
      }
    }
  }

  /// Pauses it; see ``Downloader/pause(_:)``.
  @discardableResult
  public func pause() async throws -> Bool { try await downloader.pause(id) }

  /// Lets it go on; see ``Downloader/resume(_:)``.
  @discardableResult
  public func resume() async throws -> Bool { try await downloader.resume(id) }

  /// Starts it now; see ``Downloader/start(_:preempting:)``.
  @discardableResult
  public func start(preempting: Preemption = .none) async throws -> Bool {
    try await downloader.start(id, preempting: preempting)
  }

  /// Changes what was asked for; see ``Downloader/update(_:_:)``.
  @discardableResult
  public func update(
    _ change: @escaping @Sendable (inout DownloadRequest) throws -> Void
  ) async throws -> DownloadStatus {
    try await downloader.update(id, change)
  }

  /// Cancels it; see ``Downloader/cancel(_:)``.
  @discardableResult
  public func cancel() async throws -> Bool { try await downloader.cancel(id) }

  /// Removes it; see ``Downloader/remove(_:deletingFile:)``.
  @discardableResult
  public func remove(deletingFile: Bool = false) async throws -> Bool {
    try await downloader.remove(id, deletingFile: deletingFile)
  }

  private var gone: DownloadError { DownloadError(.removed, "there is no download “\(id)” any more") }
}

extension DownloadState {
  /// The result of a download that has ended; `nil` while it has not.
  /// - Throws: ``DownloadError`` when it has failed, or was cancelled.
  fileprivate var artifact: Artifact? {
    get throws(DownloadError) {
      switch self {
      case .finished(let artifact): artifact
      case .failed(let error): throw error
      case .cancelled: throw DownloadError(.cancelled, "the download was cancelled")
      default: nil
      }
    }
  }
}

/// What happens to one download, beginning with its present state.
public struct DownloadEvents: AsyncSequence, Sendable {
  /// An event.
  public typealias Element = DownloadEvent
  /// Nothing is thrown.
  public typealias Failure = Never

  let id: DownloadID
  let downloader: Downloader

  /// Begins to watch.
  public func makeAsyncIterator() -> Iterator { Iterator(id: id, downloader: downloader) }

  /// Reads events.
  public struct Iterator: AsyncIteratorProtocol {
    private let id: DownloadID
    private let downloader: Downloader
    private var stream: AsyncStream<DownloadEvent>.Iterator?
    private var isOver = false

    init(id: DownloadID, downloader: Downloader) {
      self.id = id
      self.downloader = downloader
    }

    /// The next event; `nil` at the end.
    public mutating func next() async -> DownloadEvent? {
      await next(isolation: #isolation)
    }

    /// The next event; `nil` at the end.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> DownloadEvent? {
      guard !isOver else { return nil }
      let event: DownloadEvent?
      if stream == nil {
        // Subscribed first, asked second: nothing can happen in between unseen.
        stream = downloader.engine.hub.events(of: id).makeAsyncIterator()
        let status = try? await downloader.status(of: id)
        event = status.map { DownloadEvent($0.request, .state($0.state)) }
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
  }
}
