import ArgumentParser
import Downpipe
import DownpipeRPC
import DownpipeServer
import Foundation

/// `downpipe serve`: runs downloads that clients of aria2 add.
struct ServeCommand: AsyncParsableCommand, NetworkCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve",
    abstract: "Run downloads that clients add: a server for programs that drive aria2.",
    discussion: """
      Clients send JSON-RPC to http://HOST:PORT/jsonrpc, over HTTP or WebSocket, with a token. It is made at the first start, \
      and kept in .downpipe/rpc-secret below the folder; a terminal shows it. SIGTERM and SIGINT stop transfers at a \
      checkpoint; the next start continues them.

      URLs of clients are treated as with “get --untrusted”: they cannot reach addresses of this network, nor use its \
      passwords. Files stay in the folder.
      """
  )

  @OptionGroup(title: "Folder options") var folder: FolderOptions
  @OptionGroup var outside: OutsideOptions
  @OptionGroup var programs: ProgramOptions
  @OptionGroup(title: "Transfer options") var transfer: TransferOptions
  @OptionGroup(title: "Connection options") var connection: ConnectionOptions
  @OptionGroup(title: "Options for logging in") var logIn: LogInOptions
  @OptionGroup(title: "TLS options") var tls: TLSOptions
  @OptionGroup(title: "Options for when to download") var gates: GateOptions
  @OptionGroup(title: "Options for clients") var clients: ClientOptions
  @OptionGroup(title: "Output options") var reporting: OutputOptions

  func validate() throws {
    if folder.ledger == "none" { throw ValidationError("--ledger none: this command needs a ledger that lasts") }
  }

  #if RPC
    func run() async throws {
      let servers = try network.settings(for: transfer.source)
      guard !servers.logIn.isGiven else {
        throw UsageError("--user and --bearer belong to the downloads of one command: use --netrc for a server")
      }
      if !clients.trustClients, transfer.source != PipelineSettings.Transport.forStrangers {
        throw UsageError(
          "--source: only curl can hold back URLs of strangers: use it, or --trust-clients if you trust all clients")
      }
      let directory = try Folder.prepare(folder.directory, option: "--directory")
      guard let ledger = try folder.usableLocation(directory: directory) else { return }
      var settings = transfer.settings(directory: directory, ledger: ledger)
      settings.goesOn = true
      settings.gates = gates.settings
      settings.network = servers
      settings.scope = outside.scope(directory: directory, ledger: ledger)
      settings.programs = programs.rule
      let log = WorkLog(isJSON: reporting.json, isQuiet: reporting.quiet, urls: reporting.urls.style)
      let configuration = try clients.configuration(directory: directory, settings: settings)

      let interruption = Interruption()
      let downloader = try await Self.downloader(settings, log)
      let result = await Result { try await serve(downloader, configuration, interruption) }
      await downloader.end()
      try result.get()
    }

    /// A downloader whose limits clients change.
    private static func downloader(_ settings: PipelineSettings, _ log: WorkLog) async throws -> Downloader {
      let sources = try PipelineSources(settings)
      do {
        return try await Downloader(settings: RPCSettings(), options: settings.options) { [settings] changed in
          return Pipeline.stages(settings.changed(by: changed), sources, log: log, options: changed)
        }
      } catch let error as DownloadError {
        throw UsageError(error.sentence)
      }
    }

    private func serve(
      _ downloader: Downloader, _ configuration: RPCServer.Configuration, _ interruption: Interruption
    ) async throws {
      let server: RPCServer
      do { server = try await RPCServer(downloader, configuration) } catch let error as DownloadError {
        let tls = error.cause as? ServerTLSError
        let option = tls.map { $0.isOfKey ? "--rpc-private-key" : "--rpc-certificate" } ?? "--rpc-listen"
        throw UsageError("\(option): \(error.message)")
      }
      for line in clients.greeting(port: server.port) { OutputFile.warn(line) }
      let partials = LeftPartials(downloader: downloader)
      try await withThrowingTaskGroup(of: Bool.self) { group in
        group.addTask { await interruption.wait() }
        group.addTask {
          await partials.watch()
          return false
        }
        group.addTask {
          await server.run()
          return true
        }
        while let isOver = try await group.next(), !isOver {}
        group.cancelAll()
      }
    }
  #else
    func run() async throws {
      throw UsageError("this downpipe was built without a server: build it with the trait RPC")
    }
  #endif
}

#if RPC
  extension PipelineSettings {
    /// The settings with what clients have changed.
    fileprivate func changed(by settings: RPCSettings) -> PipelineSettings {
      var changed = self
      let clients = ClientOptions.mostClients
      changed.jobs = min(
        settings.concurrentDownloads ?? jobs,
        DescriptorLimit.mostDownloads(connections: connections ?? 1, besides: clients))
      // What the command line says is the most that clients get.
      changed.mostConnections = DescriptorLimit.mostConnections(
        downloads: changed.jobs, besides: clients, upTo: connections ?? 16)
      if settings.options["max-overall-download-limit"] != nil {
        changed.rateLimit = settings.overallRate.map { RateLimit($0) }
      }
      return changed
    }
  }
#endif
