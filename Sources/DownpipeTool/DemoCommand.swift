import ArgumentParser
import Downpipe
import DownpipeTesting
import Foundation

/// `downpipe demo`: a show that needs nothing but this machine.
struct DemoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "demo",
    abstract: "Watch a pipeline cope with a faulty server on this machine.",
    discussion: "Takes a few seconds. Exit status 0 when every stage did its part."
  )

  @Option(
    name: [.short, .long],
    help: ArgumentHelp("Where the files go (default: a new temporary folder).", valueName: "dir"),
    completion: .directory)
  var directory: String?

  @OptionGroup(title: "Output options") var reporting: OutputOptions

  func run() async throws {
    let folder = try Folder.prepare(directory ?? Self.temporaryFolder(), option: "--directory")
    let files = DemoFile.all
    let server = try await DemoServer.start(files)
    do {
      try await show(files, from: server, in: folder)
    } catch {
      await server.shutdown()
      throw error
    }
    await server.shutdown()
  }

  /// The pipeline of the show.
  private static func pipeline(folder: String, diary: Diary) -> Pipeline {
    Pipeline {
      HTTPSource()
      FileStore(folder, onConflict: .replace)
      #if SQLite
        SQLiteLedger(folder + "/.downpipe/ledger.sqlite")
      #endif

      PriorityQueue()
      Limits(concurrent: 3)
      Retry(.exponential(attempts: 3, base: .seconds(1), cap: .seconds(5)))

      VerifyChecksum()
      #if Zlib
        Gunzip()
      #endif
      diary
    }
  }

  private func show(_ files: [DemoFile], from server: DemoServer, in folder: String) async throws {
    let isSilent = reporting.json || reporting.quiet
    func say(_ text: String) throws {
      if !isSilent { try OutputFile.standardOutput.write(text + "\n") }
    }
    let diary = Diary()
    let pipeline = Self.pipeline(folder: folder, diary: diary)
    let requests = files.map { Self.request($0, server) }
    try say("\(files.count) files from a slow and faulty server on this machine, through this pipeline:\n")
    try say("\(pipeline)\n")

    let choice = reporting.choice
    let run = DownloadRun(
      pipeline: pipeline, monitor: RunMonitor(output: choice.make()), isAnimated: choice.drawsBars)
    let ending = try await run.run { downloader, monitor in
      for request in requests { _ = await monitor.take(request.id) }
      try await downloader.add(contentsOf: requests)
    }
    guard case .complete = ending else { throw ExitCode(ending.exitStatus) }

    let report = DemoReport(
      files: zip(files, requests).map { ($0, $1.id) }, diary: diary.pages, folder: folder)
    let (text, isAsPlanned) = report.verify()
    try say("\n\(report.story)\n\nThe files in \(folder)\n\(text)")
    guard isAsPlanned else {
      OutputFile.complain("the show did not go as planned")
      throw ExitCode(1)
    }
    try say("\nAll as planned: nothing was lost, and what was damaged was not let through.")
  }

  private static func request(_ file: DemoFile, _ server: DemoServer) -> DownloadRequest {
    let url = server.url(of: file)
    var request = DownloadRequest(
      url, id: DownloadIdentity(url: url.absoluteString, outputName: nil).id, priority: file.priority,
      expectedDigests: FileDigest(.sha256, hex: DemoReport.digest(promised(file))).map { [$0] } ?? [])
    if file.unpacked == nil { request.steps = .only("VerifyChecksum") }
    return request
  }

  /// The bytes whose digest the request names.
  private static func promised(_ file: DemoFile) -> [UInt8] {
    let bytes = file.content.allBytes
    return file.fault == .damaged ? bytes + [0] : bytes
  }

  private static func temporaryFolder() -> String {
    FileManager.default.temporaryDirectory.appending(
      path: "downpipe-demo-\(DownloadID().rawValue.prefix(6))", directoryHint: .isDirectory
    ).path(percentEncoded: false)
  }
}
