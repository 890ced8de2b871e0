import ArgumentParser
import Downpipe

/// `downpipe restart`: fetches downloads of a ledger again from their first byte.
struct RestartCommand: LedgerRunCommand {
  static let configuration = CommandConfiguration(
    commandName: "restart",
    abstract: "Fetch downloads of a ledger again from the first byte.",
    discussion: """
      Received bytes are dropped, also those of a finished download: its file stays until the new one is complete. Use \
      it when bytes on disk turn out to be wrong; “downpipe retry” keeps them.

      The ledger has no passwords and none of the connection options: give --user, --proxy and the others again.
      """
  )

  @Argument(help: ArgumentHelp("The ids of the downloads, as in “downpipe list”.", valueName: "id"))
  var ids: [String] = []

  @Flag(help: "Restart all downloads of the ledger, except cancelled ones.")
  var all = false

  @Flag(help: "Restart all failed downloads of the ledger.")
  var failed = false

  @OptionGroup(title: "Folder options") var folder: LedgerOptions
  @OptionGroup var outside: OutsideOptions
  @OptionGroup var programs: ProgramOptions
  @OptionGroup(title: "Transfer options") var transfer: TransferOptions
  @OptionGroup(title: "Connection options") var connection: ConnectionOptions
  @OptionGroup(title: "Options for logging in") var logIn: LogInOptions
  @OptionGroup(title: "TLS options") var tls: TLSOptions
  @OptionGroup(title: "Options for when to download") var gates: GateOptions
  @OptionGroup(title: "Output options") var reporting: OutputOptions

  func validate() throws {
    if [all, failed, !ids.isEmpty].count(where: { $0 }) != 1 {
      throw ValidationError("give either the ids of downloads, or --failed, or --all")
    }
  }

  func run() async throws {
    let choice: LedgerChoice =
      if failed {
        .phases([.failed])
      } else if all {
        .phases(Set(DownloadState.Phase.allCases).subtracting([.cancelled]))
      } else {
        .ids(ids.map { DownloadID($0) })
      }
    try await run(scope: .own, choice: choice) { downloader, monitor, isUntrusted in
      let picker = LedgerPicker(
        choice: choice, countsUntrusted: !isUntrusted,
        refusal: DownloadError(.inUse, "not restarted: another process is working on it")
      ) {
        try await $0.restart($1)
      }
      try await picker.include(from: downloader, monitor)
    }
  }
}
