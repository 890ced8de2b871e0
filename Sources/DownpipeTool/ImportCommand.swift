import ArgumentParser
import Downpipe
import DownpipeAppleResumeData
import Foundation

/// `downpipe import-resume-data`: goes on with a download that Apple's URLSession has begun.
struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import-resume-data",
    abstract: "Go on with a download that URLSession has begun.",
    discussion: """
      Puts the download in the ledger and goes on from its byte, if the server's file is still the same. Interrupted, it \
      goes on when the command is run again, or with “downpipe resume”. The two files stay as they are.
      """
  )

  @Argument(
    help: ArgumentHelp("The resume data that URLSession gave.", valueName: "file"), completion: .file())
  var file: String

  @Option(
    help: ArgumentHelp("The file with the bytes that have come already.", valueName: "file"), completion: .file())
  var partial: String

  @Option(name: [.short, .long], help: ArgumentHelp("The name of the file.", valueName: "name"))
  var output: String?

  @OptionGroup(title: "Folder options") var folder: LedgerOptions
  @OptionGroup(title: "Transfer options") var transfer: TransferOptions
  @OptionGroup(title: "Output options") var reporting: OutputOptions

  func run() async throws {
    let request = try request()
    let directory = try Folder.prepare(folder.directory, option: "--directory")
    let ledger = folder.ledgerPath(directory: directory)
    #if !SQLite
      if ledger != nil { throw UsageError("this downpipe was built without SQLite: use --ledger none") }
    #endif
    let settings = transfer.settings(directory: directory, ledger: ledger)
    let choice = reporting.choice
    let monitor = RunMonitor(output: choice.make())
    let run = DownloadRun(pipeline: try Pipeline(settings), monitor: monitor, isAnimated: choice.drawsBars)
    let feeder = Feeder(plan: try GetPlan(urls: [request.givenURL], outputName: output))
    let ending = try await run.run { downloader, monitor in
      try await feeder.add([request], to: downloader, monitor)
    }
    if case .interrupted = ending {
      OutputFile.complain("interrupted; run the same command again to go on")
    }
    if ending.exitStatus != 0 { throw ExitCode(ending.exitStatus) }
  }

  /// The download that the resume data describes, with the bytes that are there already.
  private func request() throws(UsageError) -> DownloadRequest {
    guard Folder.kind(file) == .file else { throw UsageError("there is no file “\(file)”") }
    guard Folder.kind(partial) == .file else { throw UsageError("--partial: there is no file “\(partial)”") }
    do {
      // More than any resume data has; the reader refuses it with its own words.
      let handle = try FileHandle(forReadingFrom: URL(filePath: file))
      defer { try? handle.close() }
      let resumeData = try AppleResumeData(try handle.read(upToCount: 2 << 20) ?? Data())
      let checkpoint = try resumeData.checkpoint()
      let text = resumeData.url.absoluteString
      var request = try GetPlan(urls: [text], outputName: output).request(for: text)
      request.headers = try resumeData.request(id: request.id).headers
      request.headStart = .init(
        file: Folder.absolutePath(partial), count: checkpoint.bytesReceived, validator: checkpoint.validator)
      return request
    } catch let error as UsageError {
      throw error
    } catch {
      throw UsageError("\(file): \(DownloadError(error, as: .invalidRequest).message)")
    }
  }
}
