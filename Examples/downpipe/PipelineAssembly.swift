import Downpipe
import DownpipeURLSession

extension Pipeline {
  /// The pipeline of `get` and `resume`.
  ///
  /// - Parameters:
  ///   - settings: what the command line says.
  ///   - chosen: the only downloads that may run; all of the ledger's when `nil`.
  init(_ settings: PipelineSettings, only chosen: ChosenDownloads.IDs? = nil) throws(UsageError) {
    let http = try HTTPSource.Configuration(settings)

    self.init {
      if settings.transport == .urlSession {
        URLSessionSource()
      } else {
        HTTPSource(http)
      }
      FileStore(settings.directory, onConflict: settings.conflict)
      #if SQLite
        if let path = settings.ledger { SQLiteLedger(path) } else { MemoryLedger() }
      #else
        MemoryLedger()
      #endif

      PriorityQueue()
      Limits(concurrent: settings.jobs, perHost: settings.perHost)
      if let chosen { ChosenDownloads(ids: chosen) }
      Retry(.exponential(attempts: settings.retries + 1))

      VerifyChecksum()
      #if Zlib
        if settings.unpacks { GunzipWhereAsked() }
      #endif
      if settings.moves { MoveWhereAsked(onConflict: settings.conflict) }
    }
  }
}

extension HTTPSource.Configuration {
  fileprivate init(_ settings: PipelineSettings) throws(UsageError) {
    self.init()
    guard let url = settings.proxy else { return }
    do { proxy = try HTTPSource.Proxy(url: url) } catch { throw UsageError("--proxy: \(error.message)") }
  }
}
