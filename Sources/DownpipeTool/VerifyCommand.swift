import ArgumentParser
import Downpipe

/// `downpipe verify`: compares finished files with their digests, and repairs them.
struct VerifyCommand: LedgerRunCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Compare the finished files of a ledger with their digests.",
    discussion: """
      A file has a digest if one was given with it (--checksum, --checksum-file, --metalink), or if its server has \
      sent one. Files without a digest, and files whose bytes a step has changed, such as archives that were unpacked, are \
      named and count as finished. A file that is damaged or missing is a failure; with --repair it is fetched again, \
      and stays in place until then. With the digests of its pieces, which a Metalink document has, only the wrong ones \
      are fetched.

      The ledger has no passwords and none of the connection options: give --user, --proxy and the others again.
      """
  )

  @Argument(
    help: ArgumentHelp(
      "The ids of the downloads, as in “downpipe list”; all finished ones if none are given.", valueName: "id"))
  var ids: [String] = []

  @Flag(help: "Fetch damaged and missing files again, or their wrong pieces.")
  var repair = false

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
    // A repair may have been interrupted.
    let choice: LedgerChoice = ids.isEmpty ? .published : .ids(ids.map { DownloadID($0) })
    let isRepairing = repair
    try await run(scope: .own, choice: choice) { downloader, monitor, isUntrusted in
      let picker = LedgerPicker(choice: choice, countsUntrusted: isRepairing && !isUntrusted) { downloader, status in
        try await Self.verify(status, repairing: isRepairing, downloader, monitor)
      }
      try await picker.include(from: downloader, monitor)
    }
  }

  /// Verifies a file.
  /// - Returns: The result; `nil` if the file is being repaired.
  private static func verify(
    _ status: DownloadStatus, repairing isRepairing: Bool, _ downloader: Downloader, _ monitor: RunMonitor
  ) async throws -> DownloadResult? {
    func failed(_ error: DownloadError) -> DownloadResult {
      DownloadResult(id: status.id, url: status.request.givenURL, error: error)
    }
    guard status.state.phase == .finished else {
      if isRepairing, status.earlierArtifact != nil, try await downloader.resume(status.id) { return nil }
      return failed(
        DownloadError(
          .invalidRequest,
          status.earlierArtifact == nil
            ? "it has not finished: “downpipe resume” goes on with it"
            : "its file is being fetched again: --repair goes on with that, unless another process does"))
    }
    do {
      switch try await downloader.verify(status.id, repairing: isRepairing) {
      case .intact:
        return DownloadResult(status, wasFinishedBefore: true)
      case .unverifiable(let reason):
        let error = DownloadError(.processing, "not verified: \(reason)")
        try await monitor.show(DownloadNotice(id: status.id, url: status.request.givenURL, error: error))
        return DownloadResult(status, wasFinishedBefore: true)
      case .damaged(let error):
        return isRepairing ? nil : failed(error)
      case .missing:
        let error = DownloadError(.storage, "the file does not exist any more: --repair fetches it again")
        return isRepairing ? nil : failed(error)
      }
    } catch let error as DownloadError where error.code != .ledger && error.code != .shutDown {
      return failed(error)
    }
  }
}
