import ArgumentParser
import Downpipe
import Foundation

/// A command that downloads files, with every option checked.
struct GetRun: Sendable {
  let plan: GetPlan
  let list: URLList?
  let settings: PipelineSettings
  let output: OutputChoice

  /// - Throws: `ExitCode` when files failed or were left out, or the command was interrupted; ``UsageError``.
  func run() async throws {
    let ledger = try EarlyLedger(settings)
    let monitor = RunMonitor(output: output.make())
    let run = DownloadRun(
      pipeline: try await ledger.pipeline(settings), settings: settings, monitor: monitor, isAnimated: output.drawsBars)
    defer { if settings.ledger == nil { Folder.removeEmptyWorkspace(of: settings.directory) } }
    let ending = try await run.run { [plan, list, settings] downloader, monitor in
      var feeder = Feeder(plan: plan, documents: plan.isMetalink ? MetalinkDocuments(plan, settings) : nil)
      try await feeder.lookForHistory(downloader)
      try await feeder.add(plan.urls, to: downloader, monitor)
      while let urls = try await list?.next() { try await feeder.add(urls, to: downloader, monitor) }
    }
    if case .interrupted(let tally) = ending {
      let hint = settings.ledger == nil ? "" : "; run the same command again to resume"
      OutputFile.warn("interrupted: \(tally.finished) of \(tally.total) finished\(hint)")
    }
    if case .complete(let tally) = ending, tally.total == 0 {
      OutputFile.warn("the list has no URL: nothing was fetched")
    }
    if ending.exitStatus != 0 { throw ExitCode(ending.exitStatus) }
  }

  /// Checks the only URL of a command: if it cannot be used, the command fails at once, in the form of output that was
  /// asked for.
  static func checkSingle(_ plan: GetPlan, _ output: OutputChoice) throws {
    guard plan.isSingle, !plan.isMetalink, let text = plan.urls.first else { return }
    do { _ = try plan.request(for: text) } catch {
      if output.isJSON {
        let result = DownloadResult(id: plan.id(for: text), url: text, error: error)
        try OutputFile.standardOutput.write(JSONOutput.line(result, output.urls) + "\n")
      }
      // A mistyped subcommand is taken for a URL.
      if text.allSatisfy({ $0.isLetter || $0 == "-" }), !text.isEmpty {
        throw UsageError("“\(text.prefix(200))” is neither a command nor a URL: see “downpipe --help”")
      }
      throw UsageError("\(output.urls.text(text).prefix(200)): \(error.message)")
    }
  }
}
