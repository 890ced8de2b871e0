import ArgumentParser
import Downpipe
import Foundation

/// `downpipe resume`: resumes the unfinished downloads of a ledger.
struct ResumeCommand: LedgerRunCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Resume all unfinished downloads of a ledger.",
    discussion: """
      Failed and paused downloads are tried again, and downloads that wait for another attempt start at once. Cancelled \
      downloads stay cancelled. Paths outside the folder need --allow-outside, and programs of --on-finish \
      --allow-programs.

      The ledger has no passwords and none of the connection options: give --user, --proxy and the others again. \
      --user and --bearer are for the hosts of downloads that were added with one of them. Downloads that were added \
      with --untrusted keep its rules, without the option.
      """
  )

  @OptionGroup(title: "Folder options") var folder: LedgerOptions
  @OptionGroup var outside: OutsideOptions
  @OptionGroup var programs: ProgramOptions
  @OptionGroup(title: "Transfer options") var transfer: TransferOptions
  @OptionGroup(title: "Connection options") var connection: ConnectionOptions
  @OptionGroup(title: "Options for logging in") var logIn: LogInOptions
  @OptionGroup(title: "TLS options") var tls: TLSOptions
  @OptionGroup(title: "Options for when to download") var gates: GateOptions
  @OptionGroup(title: "Output options") var reporting: OutputOptions

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Change the priority of all unfinished downloads: high, normal, low, or a number (high is 100, low is -100).",
      valueName: "priority"),
    transform: Priority.parse)
  var priority: Priority?

  /// The downloads of the ledger that the command runs, or shows the end of.
  private static let unfinished: Set<DownloadState.Phase> = [.waiting, .transferring, .processing, .paused, .failed]

  func run() async throws {
    let start = Date().addingTimeInterval(-0.001)
    try await run(scope: .all, choice: .phases(Self.unfinished)) { [priority] downloader, monitor, isUntrusted in
      try await Self.resumeAll(downloader, monitor, priority, countsUntrusted: !isUntrusted, since: start)
    }
  }

  /// - Parameter start: When the command began: downloads that ended since are its own, and are shown.
  private static func resumeAll(
    _ downloader: Downloader, _ monitor: RunMonitor, _ priority: Priority?, countsUntrusted: Bool, since start: Date
  ) async throws {
    // Pages in the order of addition do not shift meanwhile; only phases change.
    let page = 1000
    var offset = 0
    while true {
      let statuses = try await downloader.statuses(DownloadQuery(limit: page, offset: offset))
      await monitor.beginAdding()
      for status in statuses {
        let phase = status.state.phase
        if let priority, ![.finished, .cancelled].contains(phase), status.request.priority != priority {
          try await downloader.update(status.id) { $0.priority = priority }
        }
        if countsUntrusted, ![.finished, .cancelled].contains(phase), status.request.isUntrusted {
          await monitor.countUntrusted()
        }
        switch phase {
        case .finished, .failed:
          if status.updatedAt >= start {
            if await monitor.include(status.id) { try await monitor.receive([status]) }
          } else if phase == .failed, await monitor.include(status.id) {
            try await downloader.resume(status.id)
          }
        case .cancelled: continue
        case .paused:
          if await monitor.include(status.id) { try await downloader.resume(status.id) }
        case .waiting, .transferring, .processing:
          if await monitor.include(status.id), status.isHeldBack { try await downloader.resume(status.id) }
        }
      }
      await monitor.endAdding()
      guard statuses.count == page else { return }
      offset += page
    }
  }
}
