@_spi(Ledger) import Downpipe

/// Opens the ledger of a command while the pipeline is built: opening waits for the disk.
struct EarlyLedger: Sendable {
  #if SQLite
    private let opening: Task<any LedgerStore, any Error>?

    init(_ settings: PipelineSettings) {
      opening = settings.ledger.map { path in Task { try await SQLiteLedger(path).open() } }
    }
  #else
    init(_ settings: PipelineSettings) {}
  #endif

  /// The pipeline of the command, whose downloader gets the ledger that is being opened.
  ///
  /// - Throws: ``UsageError`` as `Pipeline.init`; the ledger is closed then.
  func pipeline(_ settings: PipelineSettings) async throws -> Pipeline {
    #if SQLite
      do throws(UsageError) {
        return try Pipeline(settings, opening: opening)
      } catch {
        try? await opening?.value.close()
        throw error
      }
    #else
      return try Pipeline(settings)
    #endif
  }
}

#if SQLite
  /// A ledger that is being opened for one downloader.
  struct OpeningLedger: Ledger {
    let base: SQLiteLedger
    /// `nil` for a ledger that nothing has opened yet.
    let opening: Task<any LedgerStore, any Error>?

    var name: String { base.name }
    var id: String { base.id }
    var summary: String { base.summary }

    func open() async throws -> any LedgerStore {
      if let opening { try await opening.value } else { try await base.open() }
    }
  }
#endif
