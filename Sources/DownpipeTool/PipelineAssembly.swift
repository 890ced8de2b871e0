@_spi(Ledger) import Downpipe
import DownpipeRPC
import Foundation

extension Pipeline {
  /// The pipeline of every command.
  ///
  /// - Parameters:
  ///   - opening: The opening of the ledger, if it has begun.
  ///   - log: What sees the events of all downloads.
  init(
    _ settings: PipelineSettings, opening: Task<any LedgerStore, any Error>? = nil, log: WorkLog? = nil
  ) throws(UsageError) {
    let parts = try PipelineSources(settings, opening: opening)
    self.init(Self.stages(settings, parts, log: log))
  }

  /// The stages of every command. The order is that of “serve” also for other commands, which may work on the same ledger:
  /// another one would be written to all its records.
  ///
  /// - Parameter options: The options of clients for all downloads; `nil` without clients.
  static func stages(
    _ settings: PipelineSettings, _ parts: PipelineSources, log: WorkLog?, options: RPCSettings? = nil
  ) -> PipelineStages {
    let retry = Retry(
      .exponential(attempts: settings.retries + 1),
      table: settings.goesOn ? .service : (settings.gates.minFree ?? 0) > 0 ? .commandLineWithReserve : .commandLine)
    @PipelineBuilder func build() -> PipelineStages {
      parts.source
      for further in parts.furtherSources { further }
      if let logIn = LogInInterceptor(settings.network.logIn) { logIn }
      parts.ledger
      ScopedStore(
        base: FileStore(settings.directory, onConflict: settings.conflict), scope: settings.scope,
        showsAll: settings.showsAll, hasLedger: settings.ledger != nil, isForAnyFolder: settings.isForAnyFolder)
      if let log { log }

      QueueOrder()
      Limits(concurrent: settings.jobs, perHost: settings.connectionsPerHost)
      if let most = settings.fleetPerHost { FleetLimits(perHost: most) }
      if let options {
        DownloadOptions(
          options, retry: retry, segments: settings.segmented, mostConnections: settings.mostConnections)
      } else {
        retry
        if let segmented = settings.segmented { segmented }
      }
      if let limit = settings.rateLimit { limit }
      if let rate = settings.fleetRate { RateLimit(rate, across: .fleet, id: "FleetRate") }
      for gate in settings.gates.gates(directory: settings.directory) { gate }

      // Each request names the steps that it needs.
      VerifyChecksum()
      ChecksumFileStep()
      RequireDigest()
      SignatureStep()
      Gunzip(otherFiles: .keep)
      SetModificationDate()
      ExtractStep()
      PlacementStep(directory: settings.directory, conflict: settings.conflict, scope: settings.scope)
      CommandStep(rule: settings.programs)
      UploadStep()
    }
    return build()
  }

  /// The pipeline that fetches documents of a command into memory.
  ///
  /// - Parameter finder: Finds the document of a file.
  init(forDocuments settings: PipelineSettings, _ finder: DescriptionFinder? = nil) throws(UsageError) {
    let source = try settings.source()
    let furtherSources = try settings.furtherSources()
    self.init {
      source
      for further in furtherSources { further }
      if let logIn = LogInInterceptor(settings.network.logIn) { logIn }
      if let finder { finder }
      MemoryStore()
      Limits(concurrent: 1)
      for gate in settings.gates.gates(directory: settings.directory) { gate }
      Retry(.exponential(attempts: settings.retries + 1), table: .commandLine)
    }
  }
}

extension Downloader {
  /// Opens the ledger of a command that runs no downloads.
  ///
  /// - Throws: ``UsageError`` when the ledger cannot be opened.
  static func reading(_ settings: PipelineSettings) async throws -> Downloader {
    var settings = settings
    settings.hasSource = false
    return try await starting(Pipeline(settings), options: DownloaderOptions(startsSuspended: true))
  }

  /// Starts the downloader of a command.
  ///
  /// - Throws: ``UsageError`` when it cannot start: the command names a ledger or a certificate that cannot be used.
  static func starting(_ pipeline: Pipeline, options: DownloaderOptions) async throws -> Downloader {
    do {
      return try await Downloader(pipeline, options: options)
    } catch let error as DownloadError {
      throw UsageError(error.sentence)
    }
  }
}

extension FailureTable {
  /// Of what runs until it is told to stop.
  fileprivate static let service = FailureTable.standard
    .with(.code(.offline), .resume, because: "the network may come back within the attempts")
    .with(.code(.inUse), .resume, because: "the other command may end within the attempts")

  /// With `--min-free`, a command waits for space.
  fileprivate static let commandLineWithReserve = service.without(.scope(.machine))

  /// A command ends with an error where a service waits until the cause is gone. All bytes are kept, and the same command
  /// resumes.
  fileprivate static let commandLine =
    commandLineWithReserve
    .with(.code(.noSpace), .giveUp, because: "the user of the command has to make room")
}

/// The stages that stay as long as a command runs.
struct PipelineSources: Sendable {
  let source: any Source
  let furtherSources: [any Source]
  let ledger: OpeningLedger

  /// - Parameter opening: The opening of the ledger, if it has begun.
  init(_ settings: PipelineSettings, opening: Task<any LedgerStore, any Error>? = nil) throws(UsageError) {
    source = try settings.source()
    furtherSources = try settings.furtherSources()
    ledger = OpeningLedger(base: try settings.ledger?.stage() ?? MemoryLedger(), opening: opening)
  }
}
