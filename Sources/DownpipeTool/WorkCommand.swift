import ArgumentParser
import Downpipe
import Foundation

/// `downpipe work`: runs downloads of a ledger until it is told to stop.
struct WorkCommand: AsyncParsableCommand, NetworkCommand {
  static let configuration = CommandConfiguration(
    commandName: "work",
    abstract: "Run downloads of a ledger, also later ones, until a signal.",
    discussion: """
      With --ledger postgresql://…, any number of machines run this command and share the queue of one database. SIGTERM \
      and SIGINT stop transfers at a checkpoint, and give the downloads back; the exit status is 0 then. With --until-idle \
      it is 1 if downloads have failed at this worker.

      Files are saved in the folder, each by the worker that has taken it. Limits hold for this worker; --fleet-per-host \
      and --fleet-limit-rate hold for all workers together.
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
  @OptionGroup(title: "Output options") var reporting: OutputOptions

  @Option(
    help: ArgumentHelp(
      "Download this many files from one host at most, at all workers together that have this option.", valueName: "n"))
  var fleetPerHost: Int?

  @Option(
    help: ArgumentHelp(
      "Download at this speed at most, all files of all workers together that have this option, such as 500k or 2M.",
      valueName: "speed"),
    transform: SpeedLimit.rate)
  var fleetLimitRate: ByteRate?

  @Flag(help: "End when no download waits or runs, here or at another worker.")
  var untilIdle = false

  @Option(
    help: ArgumentHelp(
      "Reply to GET /metrics (for Prometheus) and /healthz at this port of the loopback interface, or at address:port.",
      valueName: "port"))
  var listen: WorkerEndpoint.Address?

  func validate() throws {
    if folder.ledger == "none" { throw ValidationError("--ledger none: this command needs a ledger that lasts") }
    guard (1...1_000_000).contains(fleetPerHost ?? 1) else {
      throw ValidationError("--fleet-per-host must be a number from 1 to 1000000")
    }
  }

  func run() async throws {
    let servers = try network.settings(for: transfer.source)
    guard !servers.logIn.isGiven else {
      throw UsageError("--user and --bearer belong to the downloads of one command: use --netrc for a worker")
    }
    let directory = try Folder.prepare(folder.directory, option: "--directory")
    guard let ledger = try folder.usableLocation(directory: directory) else { return }
    var settings = transfer.settings(directory: directory, ledger: ledger)
    settings.goesOn = true
    settings.gates = gates.settings
    settings.network = servers
    settings.scope = outside.scope(directory: directory, ledger: ledger)
    settings.programs = programs.rule
    settings.fleetPerHost = fleetPerHost
    settings.fleetRate = fleetLimitRate
    let log = WorkLog(isJSON: reporting.json, isQuiet: reporting.quiet, urls: reporting.urls.style)

    let interruption = Interruption()
    let downloader = try await Downloader.starting(Pipeline(settings, log: log), options: settings.options)
    let result = await Result { try await work(downloader, log, interruption) }
    await downloader.end()
    // The log has seen all events after the shutdown.
    if try result.get() == .idle, !log.counts.failed.isEmpty { throw ExitCode.failure }
  }

  /// Why the work is over.
  private enum Ending { case idle, interrupted }

  private func work(_ downloader: Downloader, _ log: WorkLog, _ interruption: Interruption) async throws -> Ending? {
    try await withThrowingTaskGroup(of: Ending?.self) { group in
      let partials = LeftPartials(downloader: downloader)
      group.addTask { await interruption.wait() ? .interrupted : nil }
      group.addTask {
        await partials.watch()
        return nil
      }
      if untilIdle {
        group.addTask {
          try await downloader.waitUntilIdle()
          await partials.delete()
          return .idle
        }
      }
      if let listen {
        let health = WorkerHealth(downloader, log)
        let endpoint = try await WorkerEndpoint(listen) { health.answer($0) }
        group.addTask {
          await health.watch()
          return nil
        }
        group.addTask {
          await endpoint.serve()
          return nil
        }
      }
      defer { group.cancelAll() }
      while let ending = try await group.next() {
        if let ending { return ending }
      }
      return nil
    }
  }
}
