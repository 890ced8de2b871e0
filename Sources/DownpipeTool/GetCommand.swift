import ArgumentParser
import Downpipe
import Foundation

/// `downpipe get`: downloads files.
struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Download files.",
    discussion: "Interrupted, it leaves everything so that the same command goes on."
  )

  @OptionGroup(title: "Options") var input: GetOptions
  @OptionGroup(title: "Folder options") var folder: LedgerOptions
  @OptionGroup(title: "Transfer options") var transfer: TransferOptions
  @OptionGroup(title: "Output options") var reporting: OutputOptions

  func run() async throws {
    #if !Zlib
      if input.gunzip { throw UsageError("this downpipe was built without zlib, and cannot unpack gzip files") }
    #endif
    var plan = try input.plan()
    let list = try plan.inputFile.map(URLList.init)
    if plan.isSingle, let text = plan.urls.first {
      do { _ = try plan.request(for: text) } catch { try refuse(text, plan, error) }
    }

    let directory = try Folder.prepare(folder.directory, option: "--directory")
    if let name = plan.outputName, Folder.kind(directory + "/" + name) == .directory {
      throw UsageError("--output: “\(name)” is a folder")
    }
    plan.wishes = RequestWishes(
      unpacks: input.gunzip, folder: try input.moveInto.map { try Folder.prepare($0, option: "--move-into") })
    try checkPlace(of: plan, directory: directory)

    let ledger = folder.ledgerPath(directory: directory)
    #if !SQLite
      if ledger != nil { throw UsageError("this downpipe was built without SQLite: use --ledger none") }
    #endif
    var settings = transfer.settings(directory: directory, ledger: ledger)
    settings.scope = PathScope(directory: directory, ledger: ledger, more: plan.wishes.folder.map { [$0] } ?? [])

    let choice = reporting.choice
    let monitor = RunMonitor(output: choice.make())
    let run = DownloadRun(pipeline: try Pipeline(settings), monitor: monitor, isAnimated: choice.drawsBars)
    let feeder = Feeder(plan: plan)
    let given = plan.urls
    let ending = try await run.run { downloader, monitor in
      try await feeder.add(given, to: downloader, monitor)
      while let urls = try await list?.next() { try await feeder.add(urls, to: downloader, monitor) }
    }
    report(ending)
    if ending.exitStatus != 0 { throw ExitCode(ending.exitStatus) }
  }

  /// Refuses at once to replace what is no regular file, where the name is known before.
  private func checkPlace(of plan: GetPlan, directory: String) throws(UsageError) {
    guard transfer.onConflict == .replace, let name = plan.outputName else { return }
    guard let obstacle = Folder.obstacle(at: (plan.wishes.folder ?? directory) + "/" + name) else { return }
    throw UsageError(
      "--output: “\(name)” is \(obstacle), and --on-conflict replace takes the place of regular files only: "
        + "remove it, or choose another name")
  }

  /// The only URL cannot be used: the command is wrong, and says so in the form that was asked for.
  private func refuse(_ text: String, _ plan: GetPlan, _ error: DownloadError) throws -> Never {
    if reporting.json {
      let id = DownloadIdentity(url: text, outputName: plan.outputName).id
      try OutputFile.standardOutput.write(JSONOutput.line(LastWord(id: id, url: text, error: error)) + "\n")
    }
    throw UsageError("\(text.redactedURL.prefix(200)): \(error.message)")
  }

  private func report(_ ending: DownloadRun.Ending) {
    guard case .interrupted(let tally) = ending else { return }
    let left = folder.ledger == "none" ? "" : "; run the same command again to go on"
    OutputFile.complain("interrupted: \(tally.finished) of \(tally.total) finished\(left)")
  }
}
