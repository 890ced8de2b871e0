import ArgumentParser
@_spi(Ledger) import Downpipe
import DownpipeJSON
import DownpipeRPC

/// `downpipe import`: puts exported downloads into a ledger.
struct ImportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Put the downloads of an export into a ledger, and start nothing.",
    discussion: """
      “downpipe export” makes the file. Each download is as it was: finished ones stay finished and are not fetched again, \
      failed ones keep their cause, and the others wait in the same order. A download whose id the ledger knows stays as \
      the ledger has it, so the same file can be imported again after an interruption.

      Files are not part of the export. An unfinished download goes on with what was received if it runs in the same folder \
      and the ledger was empty; otherwise it begins anew. “downpipe list --orphans” shows what is left over.

      Import only files that you trust: a download names the file that it has, which may be any file of this machine, and \
      commands such as remove and verify then work on it.

      Lines that cannot be read are reported and left out. The exit status is 1 then, and if the file was cut off.
      """
  )

  @Argument(help: ArgumentHelp("The export; “-” is standard input.", valueName: "file"), completion: .file())
  var file: String

  @OptionGroup(title: "Folder options") var folder: FolderOptions
  @Flag(
    help: ArgumentHelp(
      """
      Let downloads without a file run in any folder: each goes to that of the worker that takes it, as after “downpipe add” \
      to a database. They begin anew then. By default they belong to the very folder that they were added for, and go on.
      """))
  var anyFolder = false
  @Flag(help: "Print one JSON object at the end.")
  var json = false

  func validate() throws {
    if folder.ledger == "none" { throw ValidationError("--ledger none: this command needs a ledger that lasts") }
  }

  func run() async throws {
    let reader = try LineReader(file)
    let isShared = try folder.location(directory: "/")?.isShared ?? false
    let directory =
      try isShared ? Folder.absolutePath(folder.directory) : Folder.prepare(folder.directory, option: "--directory")
    guard let ledger = try folder.usableLocation(directory: directory) else { return }
    let store = try await ledger.store()
    var queue = QueueImport(isForAnyFolder: anyFolder, location: try isShared ? nil : FileStore(directory).location)
    do {
      // That of the commands that run the downloads, which would otherwise rank all of them again.
      try await store.rank(by: Ranking(QueueOrder()))
      try await queue.run(from: reader, into: store)
      try await store.close()
    } catch {
      try? await store.close()
      if queue.imported > 0 { OutputFile.warn("\(queue.imported) imported before this error; run the command again") }
      throw error
    }
    if queue.elsewhere > 0 {
      OutputFile.warn(
        "\(queue.elsewhere) downloads without a file belong to the folders that they were added for, and run there only: "
          + "“--any-folder” imports them for any folder")
    }
    try OutputFile.standardOutput.write(Self.summary(queue, isJSON: json))
    if queue.damaged > 0 || !queue.isComplete { throw ExitCode(1) }
  }

  private static func summary(_ queue: QueueImport, isJSON: Bool) -> String {
    if isJSON {
      let object: JSONObject = [
        "imported": queue.imported, "known": queue.known, "damaged": queue.damaged, "complete": queue.isComplete,
      ]
      return object.json + "\n"
    }
    let parts = [
      "\(queue.imported) imported", queue.known > 0 ? "\(queue.known) known" : "",
      queue.damaged > 0 ? "\(queue.damaged) damaged" : "",
    ]
    return parts.filter { !$0.isEmpty }.joined(separator: ", ") + "\n"
  }
}
