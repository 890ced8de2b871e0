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
      ScopedStore(
        base: FileStore(settings.directory, onConflict: settings.conflict), scope: settings.scope,
        showsAll: settings.showsAll)
      #if SQLite
        if let path = settings.ledger { SQLiteLedger(path) } else { MemoryLedger() }
      #else
        MemoryLedger()
      #endif

      PriorityQueue()
      Limits(concurrent: settings.jobs, perHost: settings.perHost)
      Retry(.exponential(attempts: settings.retries + 1), table: .commandLine)

      // A request names those that it wants.
      VerifyChecksum()
      #if Zlib
        Gunzip(otherFiles: .keep)
      #endif
      MoveInto(onConflict: settings.conflict) { context in
        let folder = RequestWishes(context.request).folder
        if let folder { try settings.scope.check(folder: folder) }
        return folder
      }
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
