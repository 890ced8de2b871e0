import Downpipe
import DownpipeURLSession

extension Pipeline {
  /// The pipeline of `get` and `resume`.
  ///
  /// - Parameter settings: what the command line says.
  init(_ settings: PipelineSettings) throws(UsageError) {
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
      Retry(.exponential(attempts: settings.retries + 1), table: .commandLine)

      VerifyChecksum()
      #if Zlib
        if settings.unpacks { GunzipWhereAsked(scope: settings.scope) }
      #endif
      if settings.moves { MoveWhereAsked(onConflict: settings.conflict, scope: settings.scope) }
    }
  }
}

extension FailureTable {
  /// Somebody waits for a command to end: where an app would wait for the world to change, it fails and says why.
  /// Everything is kept, and the same command goes on.
  fileprivate static let commandLine = FailureTable.standard
    .with(.code(.noSpace), .giveUp, because: "whoever runs the command has to make room")
    .with(.code(.offline), .resume, because: "the network may come back within the attempts")
    .with(.code(.inUse), .resume, because: "the other command may end within the attempts")
}

extension HTTPSource.Configuration {
  fileprivate init(_ settings: PipelineSettings) throws(UsageError) {
    self.init()
    guard let url = settings.proxy else { return }
    do { proxy = try HTTPSource.Proxy(url: url) } catch { throw UsageError("--proxy: \(error.message)") }
  }
}
