import Downpipe

/// The assets of an app: what the user has asked for at once, everything else over Wi-Fi, three at a time.
actor Assets {
  /// Receives the events of an asset, beginning with its present state.
  typealias Callback = @Sendable (DownloadEvent) -> Void

  let downloader: Downloader
  private var callbacks: [DownloadID: Task<Void, Never>] = [:]

  /// Opens the folder of the assets and continues unfinished downloads.
  ///
  /// - Parameters:
  ///   - root: The folder.
  ///   - wifi: The gate for all that the user has not asked for.
  ///   - source: The source of the bytes.
  ///   - options: The clock; a test replaces it.
  init(
    _ root: String, wifi: some Gate = WiFiOnly(unless: .userInitiated), source: some Source = HTTPSource(),
    options: DownloaderOptions = DownloaderOptions()
  ) async throws {
    downloader = try await Downloader(options: options) {
      source
      wifi
      PriorityQueue()
      Limits(concurrent: 3)
      Retry(.constant(.seconds(1), attempts: 2), table: Self.rules)
      FileStore(root, onConflict: .reuse)
      MoveInto(onConflict: .reuse) { $0.request.metadata["movesTo"] }
      #if SQLite
        SQLiteLedger("\(root)/.downpipe/ledger.sqlite")
      #endif
    }
  }

  /// What a failure means. Time-outs are tried again without end, and other errors once.
  static let rules = FailureTable([
    .init(.code(.timedOut), .resume, because: "a slow network recovers", backOff: forever),
    .init(.httpStatus(408), .resume, because: "a time-out of the server", backOff: forever),
    .init(.httpStatus(504), .resume, because: "a time-out behind the server", backOff: forever),
    .init(.code(.offline), .waitForNetwork, because: "no attempt can succeed without a network"),
    .init(.code(.contentChanged), .restart, because: "the server has another file"),
    .init(.other, .resume, because: "a second failure is the answer"),
  ])
  private static let forever = BackOff.constant(.seconds(1), attempts: .max)

  /// Gets an asset. The same link again replaces priority, intent and callback. A file that exists is not transferred.
  ///
  /// - Parameter callback: Receives the events until the asset is finished, has failed or is requested again.
  @discardableResult
  func get(_ asset: Asset, _ callback: @escaping Callback = { _ in }) async throws -> Download {
    let download = try await downloader.add(asset.request)
    callbacks[asset.id]?.cancel()
    // Callbacks are called and replaced on the actor: a replaced one is not called again.
    callbacks[asset.id] = Task {
      for await event in download.events where !Task.isCancelled { callback(event) }
      if !Task.isCancelled { self.callbacks[asset.id] = nil }
    }
    return download
  }

  /// Stops all transfers at a checkpoint. The next start continues them.
  func close() async { await downloader.shutdown() }
}
