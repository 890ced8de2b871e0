/// Placeholder
public struct MemoryLedger: Ledger {
  public init() {}
  public func open() async throws -> any LedgerStore { throw DownloadError(.ledger, "not yet") }
}
