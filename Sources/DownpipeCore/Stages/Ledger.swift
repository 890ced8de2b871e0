/// A stage that keeps the record of every download across restarts. It holds no file bytes.
///
/// An app names a ledger in its pipeline. What it takes to write one is a system programming interface, which is imported
/// by `@_spi(Ledger) import DownpipeCore`; see <doc:WritingALedger>.
public protocol Ledger: Stage {
  /// Opens the ledger for one downloader.
  ///
  /// - Throws: ``DownloadError`` with `.ledger` when it cannot be opened.
  @_spi(Ledger) func open() async throws -> any LedgerStore
}

extension Ledger {
  // A requirement that is not imported with its protocol must have a default, and this one cannot be used.
  /// No default: a ledger without an implementation of its own does not compile.
  @_spi(Ledger) @available(*, unavailable, message: "a ledger has to implement open()")
  public func open() async throws -> any LedgerStore { fatalError("unavailable") }
}

extension Ledger {
  /// Becomes the pipeline's ledger.
  public func contribute(to parts: inout PipelineParts) { parts.ledgers.append(self) }
}
