import ArgumentParser
import Downpipe
import Foundation

/// A command that runs downloads of an existing ledger.
protocol LedgerRunCommand: AsyncParsableCommand, NetworkCommand {
  var folder: LedgerOptions { get }
  var outside: OutsideOptions { get }
  var programs: ProgramOptions { get }
  var transfer: TransferOptions { get }
  var gates: GateOptions { get }
  var reporting: OutputOptions { get }
}

extension LedgerRunCommand {
  /// Runs downloads of the ledger, and ends with the exit status of the command.
  ///
  /// - Parameters:
  ///   - scope: The downloads of the ledger that may run.
  ///   - choice: The downloads that the command takes, which may get a name and a password, or a token.
  ///   - feed: Takes the downloads of this command. The last argument says whether `--untrusted` was given.
  func run(
    scope: LeaseScope, choice: LedgerChoice,
    feed: @escaping @Sendable (Downloader, RunMonitor, Bool) async throws -> Void
  ) async throws {
    let (existing, ledger) = try folder.existing()
    let directory = try Folder.prepare(existing, option: "--directory")
    var settings = transfer.settings(directory: directory, ledger: ledger)
    settings.gates = gates.settings
    settings.network = try await networkSettings(ledger: ledger, directory: directory, choice: choice)
    settings.scope = outside.scope(directory: directory, ledger: ledger)
    settings.programs = programs.rule

    let output = reporting.choice
    let monitor = RunMonitor(output: output.make())
    let run = DownloadRun(
      pipeline: try Pipeline(settings), settings: settings, monitor: monitor, scope: scope, isAnimated: output.drawsBars
    )
    let isUntrusted = settings.network.isUntrusted
    let ending = try await run.run { downloader, monitor in try await feed(downloader, monitor, isUntrusted) }
    if case .interrupted(let tally) = ending {
      OutputFile.warn("interrupted: \(tally.finished) of \(tally.total) finished; run “downpipe resume” to resume")
    }
    if ending.exitStatus != 0 { throw ExitCode(ending.exitStatus) }
  }

  private func networkSettings(
    ledger: LedgerLocation, directory: String, choice: LedgerChoice
  ) async throws -> NetworkSettings {
    var settings = try network.settings(for: transfer.source)
    guard settings.logIn.isGiven else { return settings }
    let origins = try await LogInOrigins.stored(in: ledger, directory: directory, of: choice)
    if origins.isEmpty {
      OutputFile.warn("no download of this command was added with --user or --bearer: they are not sent")
    }
    settings.logIn.origins = origins
    return settings
  }
}

/// Which downloads of the ledger a command takes, and what it does with each.
struct LedgerPicker: Sendable {
  let choice: LedgerChoice
  /// Whether downloads with the rules of `--untrusted` are counted, for a notice at the end.
  let countsUntrusted: Bool
  /// Starts a download again, or returns its result if it does not run.
  let action: @Sendable (Downloader, DownloadStatus) async throws -> DownloadResult?

  init(
    choice: LedgerChoice, countsUntrusted: Bool,
    action: @escaping @Sendable (Downloader, DownloadStatus) async throws -> DownloadResult?
  ) {
    self.choice = choice
    self.countsUntrusted = countsUntrusted
    self.action = action
  }

  /// - Parameters:
  ///   - refusal: Why a download may stay as it is, if `command` returns `false`.
  ///   - command: Starts a download again; `false` if it stays as it is.
  init(
    choice: LedgerChoice, countsUntrusted: Bool, refusal: DownloadError,
    command: @escaping @Sendable (Downloader, DownloadID) async throws -> Bool
  ) {
    self.init(choice: choice, countsUntrusted: countsUntrusted) { downloader, status in
      try await command(downloader, status.id)
        ? nil : DownloadResult(id: status.id, url: status.request.givenURL, error: refusal)
    }
  }

  /// Includes the chosen downloads in the command.
  func include(from downloader: Downloader, _ monitor: RunMonitor) async throws {
    switch choice {
    case .ids(let ids): try await include(ids, downloader, monitor)
    case .phases, .published:
      // Pages of all phases, in the order of addition: they do not shift when downloads change their phase.
      var query = DownloadQuery(limit: 1000)
      var foreign = 0
      while true {
        let statuses = try await downloader.statuses(query)
        await monitor.beginAdding()
        for status in statuses where choice.contains(status) {
          if DownloadIdentity(status.id) == nil { foreign += 1 } else { try await include(status, downloader, monitor) }
        }
        await monitor.endAdding()
        guard statuses.count == query.limit else {
          if foreign > 0 { OutputFile.warn("\(foreign) downloads of other programs stay as they are") }
          return
        }
        query.offset += statuses.count
      }
    }
  }

  private func include(_ ids: [DownloadID], _ downloader: Downloader, _ monitor: RunMonitor) async throws {
    let statuses = try await downloader.statuses(of: ids)
    if let unknown = ids.first(where: { statuses[$0] == nil }) {
      throw UsageError(
        "the ledger has no download “\(unknown.rawValue.redactingURLs.prefix(100).escaped)”: “downpipe list --json” "
          + "shows the ids")
    }
    if let foreign = ids.first(where: { DownloadIdentity($0) == nil }) {
      throw UsageError(
        "the download “\(foreign.rawValue.redactingURLs.prefix(100).escaped)” was added by another program: this "
          + "command takes those of downpipe only")
    }
    await monitor.beginAdding()
    for id in ids {
      if let status = statuses[id] { try await include(status, downloader, monitor) }
    }
    await monitor.endAdding()
  }

  private func include(_ status: DownloadStatus, _ downloader: Downloader, _ monitor: RunMonitor) async throws {
    guard await monitor.include(status.id) else { return }
    if let result = try await action(downloader, status) {
      try await monitor.close(result)
    } else if countsUntrusted, status.request.isUntrusted {
      await monitor.countUntrusted()
    }
  }
}
