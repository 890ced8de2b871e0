// Settings that the user of an app changes: kept in the ledger, applied to what runs.
extension Downloader {
  /// Creates a downloader whose stages depend on settings that the user of an app changes, and starts it.
  ///
  /// ```swift
  /// struct Settings: Codable, Sendable {
  ///   var jobs = 3
  ///   var allowsCellular = false
  /// }
  /// let downloader = try await Downloader(settings: Settings()) { settings in
  ///   HTTPSource()
  ///   Limits(concurrent: settings.jobs)
  ///   if !settings.allowsCellular { WiFiOnly() }
  ///   FileStore("~/Downloads")
  ///   SQLiteLedger("~/Downloads/.downpipe/ledger.sqlite")
  /// }
  /// try await downloader.settings(Settings.self).update { $0.jobs = 5 }
  /// ```
  /// The ledger keeps what ``DownloaderSettings/update(excess:_:)`` has changed, and the next start continues with it. A property
  /// that the kept settings do not have, because it is new, has its value in `defaults`; a new property that is optional
  /// is `nil`, unless the type decodes it otherwise. Kept settings that cannot be decoded at all, because a property has
  /// another type now, count as `defaults`; they are replaced by the next change. Two downloaders on one ledger share
  /// the settings; each reads them when it starts and when it changes them. The settings are no place for secrets: the
  /// ledger stores them as JSON.
  /// - Parameters:
  ///   - defaults: The settings of the first start.
  ///   - options: The settings of the downloader apart from its stages.
  ///   - stages: Builds the stages from the settings. It is called at each start and at each change, and must be pure.
  ///     The ledger must not depend on the settings.
  /// - Throws: The errors of ``init(_:options:)``; `.invalidPipeline` if the ledger depends on the settings.
  public convenience init<Value: Codable & Sendable>(
    settings defaults: Value, options: DownloaderOptions = DownloaderOptions(),
    @PipelineBuilder _ stages: @escaping @Sendable (Value) -> PipelineStages
  ) async throws {
    let first = Pipeline(stages(defaults))
    try first.check()
    let store = try await first.ledger.open()
    do {
      let live = LiveSettings(try await store.settings(), defaults: defaults) { Pipeline(stages($0)) }
      let pipeline = live.pipeline
      try pipeline.check()
      guard (pipeline.ledger.id, pipeline.ledger.summary) == (first.ledger.id, first.ledger.summary) else {
        throw DownloadError(
          .invalidPipeline, "the ledger keeps the settings and must not depend on them", stage: first.ledger.name)
      }
      try await self.init(pipeline, store: store, settings: live, options: options)
    } catch {
      try? await store.close()
      throw error
    }
  }

  /// The settings that the downloader was created with, to read and to change.
  ///
  /// ```swift
  /// try await downloader.settings(Settings.self).update { $0.jobs = 5 }
  /// ```
  /// - Parameter type: The type of the settings, as it was passed to ``init(settings:options:_:)``.
  /// - Throws: ``DownloadError`` with `.invalidRequest` if the downloader was created without settings of this type.
  public func settings<Value: Codable & Sendable>(
    _ type: Value.Type
  ) throws(DownloadError) -> DownloaderSettings<Value> {
    guard let live = engine.context.settings as? LiveSettings<Value> else {
      throw DownloadError(
        .invalidRequest, "this downloader has no settings of the type \(type): pass them when it is created")
    }
    return DownloaderSettings(live: live, engine: engine)
  }
}

/// The settings of a downloader, which the user of an app changes; see ``Downloader/settings(_:)``.
///
/// A handle is cheap to copy. It may be used from any task, and several changes at once do not overwrite each other.
public struct DownloaderSettings<Value: Codable & Sendable>: Sendable {
  let live: LiveSettings<Value>
  let engine: Engine

  /// The settings in effect. Changes by another downloader on the same ledger show after the next ``update(excess:_:)``.
  public var value: Value { live.value }

  /// Changes the settings, keeps them in the ledger, and applies them to what waits and runs.
  ///
  /// The stages are built again. Gates, admission policies, rate policies, the scheduling, retry and segment policies
  /// that differ from before are replaced, as ``Downloader/replace(_:)-(Gate)`` and its companions do; those that are no longer
  /// built are removed. Sources, storage, steps and observers follow with the next start.
  ///
  /// A stage that is `Equatable` and equal to the former one, or the same object, goes on without interruption. Every
  /// other stage counts as changed, because a closure in it may be another one: gates report anew, which delays the
  /// next starts by a moment, and takes the place of a stage with the same id that the app has set by another call.
  /// Stages that the app has added under other ids stay.
  ///
  /// The change is made to what the ledger has kept last, also by another downloader. When the method returns, the
  /// settings are durable and in effect. If only the ranking of the queue fails, they are kept all the same.
  /// - Parameters:
  ///   - excess: What happens to downloads that run beyond lowered limits.
  ///   - change: Changes the settings. It is called once. If it throws, nothing is changed.
  /// - Returns: The settings after the change.
  /// - Throws: ``DownloadError`` with `.invalidRequest` if the settings cannot be encoded, `.invalidPipeline` if the new
  ///   stages do not form a pipeline, `.ledger` or `.shutDown`; the error that `change` throws.
  @discardableResult
  public func update(
    excess: Excess = .stops, _ change: @escaping @Sendable (inout Value) throws -> Void
  ) async throws -> Value {
    try await engine.update(live, excess: excess, change)
  }
}
