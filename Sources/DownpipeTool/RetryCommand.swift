import ArgumentParser
import Downpipe

/// `downpipe retry`: tries the failed downloads of a ledger again.
struct RetryCommand: LedgerRunCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry",
    abstract: "Try all failed downloads of a ledger again.",
    discussion: """
      They go on from the bytes on disk. Other downloads stay as they are: “downpipe resume” runs all unfinished ones, \
      and “downpipe restart --failed” begins the failed ones again from the first byte.

      The ledger has no passwords and none of the connection options: give --user, --proxy and the others again.
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

  func run() async throws {
    let choice = LedgerChoice.phases([.failed])
    try await run(scope: .own, choice: choice) { downloader, monitor, isUntrusted in
      let picker = LedgerPicker(
        choice: choice, countsUntrusted: !isUntrusted,
        refusal: DownloadError(.inUse, "not tried again: another process is working on it")
      ) {
        try await $0.resume($1)
      }
      try await picker.include(from: downloader, monitor)
    }
  }
}
