import ArgumentParser
import Downpipe
import Foundation

/// `downpipe resume`: goes on with everything that a ledger has unfinished.
struct ResumeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume",
    abstract: "Go on with everything unfinished.",
    discussion: """
      Those that failed or were paused are tried again, and those that wait for another attempt are tried at once. \
      Cancelled ones stay cancelled. What the ledger says to put outside of the folder fails unless --allow-outside is \
      given.
      """
  )

  @OptionGroup(title: "Folder options") var folder: LedgerOptions
  @OptionGroup var outside: OutsideOptions
  @OptionGroup(title: "Transfer options") var transfer: TransferOptions
  @OptionGroup(title: "Output options") var reporting: OutputOptions

  func run() async throws {
    #if !SQLite
      throw UsageError("this downpipe was built without SQLite, and has no ledger to go on with")
    #else
      try await resume()
    #endif
  }

  private func resume() async throws {
    let (existing, ledger) = try folder.existing()
    let directory = try Folder.prepare(existing, option: "--directory")
    var settings = transfer.settings(directory: directory, ledger: ledger)
    settings.scope = outside.scope(directory: directory, ledger: ledger)

    let choice = reporting.choice
    let monitor = RunMonitor(output: choice.make())
    let run = DownloadRun(
      pipeline: try Pipeline(settings), monitor: monitor, scope: .all, isAnimated: choice.drawsBars)
    let ending = try await run.run { downloader, monitor in
      try await Self.resumeAll(downloader, monitor)
    }
    if case .interrupted(let tally) = ending {
      OutputFile.complain("interrupted: \(tally.finished) of \(tally.total) finished; “downpipe resume” goes on")
    }
    if ending.exitStatus != 0 { throw ExitCode(ending.exitStatus) }
  }

  private static func resumeAll(_ downloader: Downloader, _ monitor: RunMonitor) async throws {
    // Whatever is unfinished now belongs to this command. The order of arrival does not change meanwhile, so
    // that pages do not shift; only the phases do, and they are looked at here.
    let page = 1000
    var offset = 0
    while true {
      let statuses = try await downloader.statuses(DownloadQuery(limit: page, offset: offset))
      await monitor.beginAdding()
      for status in statuses {
        switch status.state.phase {
        case .finished, .cancelled: continue
        case .failed, .paused:
          if await monitor.take(status.id) { try await downloader.resume(status.id) }
        case .waiting, .transferring, .processing:
          if await monitor.take(status.id), status.isHeldBack { try await downloader.resume(status.id) }
        }
      }
      await monitor.endAdding()
      guard statuses.count == page else { return }
      offset += page
    }
  }
}
