@_spi(Ledger) import Downpipe

/// Opens the ledger of a command while the pipeline is built: opening waits for the disk, or for a server.
struct EarlyLedger: Sendable {
  private let opening: Task<any LedgerStore, any Error>?

  /// - Throws: ``UsageError`` for a ledger that this build does not have.
  init(_ settings: PipelineSettings) throws(UsageError) {
    let ledger = try settings.ledger?.stage()
    opening = ledger.map { ledger in Task { try await ledger.open() } }
  }

  /// The pipeline of the command, whose downloader gets the ledger that is being opened.
  ///
  /// - Throws: ``UsageError`` as `Pipeline.init`; the ledger is closed then.
  func pipeline(_ settings: PipelineSettings) async throws -> Pipeline {
    do throws(UsageError) {
      return try Pipeline(settings, opening: opening)
    } catch {
      try? await opening?.value.close()
      throw error
    }
  }
}

/// A ledger that is being opened for one downloader.
struct OpeningLedger: Ledger {
  let base: any Ledger
  /// `nil` for a ledger that nothing has opened yet.
  let opening: Task<any LedgerStore, any Error>?

  var name: String { base.name }
  var id: String { base.id }
  var summary: String { base.summary }

  func open() async throws -> any LedgerStore {
    if let opening { try await opening.value } else { try await base.open() }
  }
}
