import ArgumentParser
import Downpipe
import Foundation

/// `downpipe get`: downloads files.
struct GetCommand: AsyncParsableCommand, NetworkCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Download files.",
    discussion: "Run the same command again to resume it after an interruption."
  )

  @OptionGroup(title: "File options") var input: GetOptions
  @OptionGroup(title: "Options for finished files") var steps: StepOptions
  @OptionGroup(title: "Folder options") var folder: FolderOptions
  @OptionGroup(title: "Transfer options") var transfer: TransferOptions
  @OptionGroup(title: "Connection options") var connection: ConnectionOptions
  @OptionGroup(title: "Options for logging in") var logIn: LogInOptions
  @OptionGroup(title: "TLS options") var tls: TLSOptions
  @OptionGroup(title: "Options for when to download") var gates: GateOptions
  @OptionGroup(title: "Options for another server") var handOver: HandOverOptions
  @OptionGroup(title: "Output options") var reporting: OutputOptions

  func run() async throws {
    if let server = handOver.server { return try await hand(over: server) }
    let run = try await prepared()
    guard input.dryRun else { return try await run.run() }
    var settings = run.settings
    settings.showsAll = true
    let dryRun = DryRun(
      plan: run.plan, settings: settings, isJSON: reporting.json, isQuiet: reporting.quiet,
      urls: reporting.urls.style)
    let status = try await dryRun.run(run.list)
    if status != 0 { throw ExitCode(status) }
  }

  /// Hands the downloads over to a server.
  private func hand(over server: String) async throws {
    let plan = try input.plan()
    let refused = [
      (input.dryRun, "--dry-run"), (input.metalink, "--metalink"), (input.refresh != nil, "--refresh"),
      (input.priority != nil, "--priority"), (logIn.user != nil, "--user"),
      (logIn.bearer != nil, "--bearer"), (steps.isAnyGiven, "an option for finished files"),
      (gates.settings != GateSettings(), "an option for when to download"), (folder.ledger != nil, "--ledger"),
    ]
    if let option = refused.first(where: \.0)?.1 {
      throw UsageError("--to and \(option) exclude each other: the server would not know of it")
    }
    let list = try plan.inputFile.map(URLList.init)
    var settings = transfer.settings(directory: "/", ledger: nil)
    settings.network = try network.settings(for: transfer.source)
    let handOver = try HandOver(
      to: server, secretFile: handOver.secretFile, plan: plan,
      directory: folder.directory == "." ? nil : folder.directory, settings: settings,
      isJSON: reporting.json, isQuiet: reporting.quiet, urls: reporting.urls.style)
    if try await handOver.run(list) > 0 { throw ExitCode(1) }
  }

  /// Checks all options.
  ///
  /// - Throws: ``UsageError`` for options that cannot be used, or not together.
  func prepared() async throws -> GetRun {
    var plan = try input.plan()
    let list = try plan.inputFile.map(URLList.init)
    try GetRun.checkSingle(plan, reporting.choice)

    let servers = try await networkSettings(&plan)

    let directory = try prepare(folder.directory, option: "--directory")
    if let name = plan.outputName, Folder.kind(directory + "/" + name) == .directory {
      throw UsageError("--output: “\(name)” is a folder")
    }
    if plan.outputName != nil, steps.name != nil {
      throw UsageError("--output and --name both name the file: remove one of them")
    }
    (plan.steps, plan.checksums) = try steps.plan(isSingle: plan.isSingle && !plan.isMetalink) {
      text throws(UsageError) in try prepare(text, option: "--move-into")
    }
    try checkPlace(of: plan, directory: directory)

    let ledger = try folder.usableLocation(directory: directory)
    var settings = transfer.settings(directory: directory, ledger: ledger)
    settings.gates = gates.settings
    settings.network = servers
    settings.scope = PathScope(directory: directory, ledger: ledger, more: plan.steps.folder.map { [$0] } ?? [])
    if let command = plan.steps.command { settings.programs = .only(command) }
    return GetRun(plan: plan, list: list, settings: settings, output: reporting.choice)
  }

  private func networkSettings(_ plan: inout GetPlan) async throws -> NetworkSettings {
    var settings = try network.settings(for: transfer.source)
    for name in plan.ignoredFields {
      OutputFile.warn("--header: \(name) is ignored: it is for a connection, and the source has its own")
    }
    plan.logsIn = settings.logIn.isGiven
    plan.isUntrusted = settings.isUntrusted
    guard plan.logsIn else { return settings }
    guard plan.headers["Authorization"] == nil else {
      throw UsageError("--header and --user or --bearer both set Authorization: remove one of them")
    }
    if settings.logIn.method != .basic { settings.logIn.origins = try await LogInOrigins.given(plan) }
    return settings
  }

  private func prepare(_ path: String, option: String) throws(UsageError) -> String {
    try input.dryRun ? Folder.absolutePath(path) : Folder.prepare(path, option: option)
  }

  /// Checks before the download whether the name belongs to something that cannot be replaced.
  private func checkPlace(of plan: GetPlan, directory: String) throws(UsageError) {
    guard transfer.onConflict == .replace, plan.steps.strippedComponents == nil, let name = plan.outputName else {
      return
    }
    guard let obstacle = Folder.obstacle(at: (plan.steps.folder ?? directory) + "/" + name) else { return }
    throw UsageError(
      "--output: “\(name)” is \(obstacle), and --on-conflict replace replaces regular files only: remove it, or choose "
        + "another name")
  }
}
