import ArgumentParser
import Downpipe
import DownpipeAppleResumeData
import Foundation

/// `downpipe import-resume-data`: resumes a download of Apple's URLSession.
struct ImportResumeDataCommand: AsyncParsableCommand, NetworkCommand {
  static let configuration = CommandConfiguration(
    commandName: "import-resume-data",
    abstract: "Resume a download that URLSession started.",
    discussion: """
      Adds the download to the ledger and resumes it, if the file on the server is still the same. Both files stay as \
      they are. Run the same command again, or “downpipe resume”, after an interruption.
      """
  )

  @Argument(help: ArgumentHelp("The resume data from URLSession.", valueName: "file"), completion: .file())
  var file: String

  @Option(
    help: ArgumentHelp("The file with the bytes that URLSession has received.", valueName: "file"),
    completion: .file())
  var partial: String

  @Option(name: [.short, .long], help: ArgumentHelp("Save the file under this name.", valueName: "name"))
  var output: String?

  @OptionGroup(title: "Folder options") var folder: FolderOptions
  @OptionGroup(title: "Transfer options") var transfer: TransferOptions
  @OptionGroup(title: "Connection options") var connection: ConnectionOptions
  @OptionGroup(title: "Options for logging in") var logIn: LogInOptions
  @OptionGroup(title: "TLS options") var tls: TLSOptions
  @OptionGroup(title: "Output options") var reporting: OutputOptions

  func run() async throws {
    var request = try request()
    var servers = try network.settings(for: transfer.source)
    request.logsIn = servers.logIn.isGiven
    request.isUntrusted = servers.isUntrusted
    servers.logIn.origins = Origin(request.url).map { [$0] } ?? []
    let directory = try Folder.prepare(folder.directory, option: "--directory")
    let ledger = try folder.usableLocation(directory: directory)
    var settings = transfer.settings(directory: directory, ledger: ledger)
    settings.network = servers
    let choice = reporting.choice
    let monitor = RunMonitor(output: choice.make())
    let run = DownloadRun(
      pipeline: try Pipeline(settings), settings: settings, monitor: monitor, isAnimated: choice.drawsBars)
    defer { if ledger == nil { Folder.removeEmptyWorkspace(of: directory) } }
    let feeder = Feeder(plan: try GetPlan(urls: [request.givenURL], outputName: output))
    let ending = try await run.run { [request] downloader, monitor in
      try await feeder.add([request], to: downloader, monitor)
    }
    if case .interrupted = ending {
      OutputFile.warn("interrupted; run the same command again to resume")
    }
    if ending.exitStatus != 0 { throw ExitCode(ending.exitStatus) }
  }

  /// The download that the resume data describes, with the bytes that URLSession has received.
  private func request() throws(UsageError) -> DownloadRequest {
    guard Folder.kind(file) == .file else { throw UsageError("the file “\(file)” does not exist") }
    guard Folder.kind(partial) == .file else { throw UsageError("--partial: the file “\(partial)” does not exist") }
    do {
      // Resume data is never this large; the reader refuses it then.
      let handle = try FileHandle(forReadingFrom: URL(filePath: file))
      defer { try? handle.close() }
      let resumeData = try AppleResumeData(try handle.read(upToCount: 2 << 20) ?? Data())
      let checkpoint = try resumeData.checkpoint()
      let text = resumeData.url.absoluteString
      var request = try GetPlan(urls: [text], outputName: output).request(for: text)
      request.headers = try resumeData.request(id: request.id).headers
      request.headStart = .init(
        file: try Folder.absolutePath(partial), count: checkpoint.bytesReceived, validator: checkpoint.validator)
      return request
    } catch let error as UsageError {
      throw error
    } catch {
      throw UsageError("\(file): \(DownloadError(error, as: .invalidRequest).message)")
    }
  }
}
