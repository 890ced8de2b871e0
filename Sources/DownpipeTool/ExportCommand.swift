import ArgumentParser
@_spi(Ledger) import Downpipe

/// `downpipe export`: writes the downloads of a ledger as lines of JSON.
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write the downloads of a ledger to a file, for “downpipe import”.",
    discussion: """
      Each line is a JSON object: the first one names the format, the last one the number of downloads, and each other one \
      is a download with all that the ledger keeps of it. The ledger stays as it is. Stop its workers before: a download \
      that is running now is exported as one that waits, and files are not part of the export.

      The lines contain header fields, URLs and passwords in them as the ledger does. A file gets the mode 0600, so that only \
      you can read it; take care of what you do with standard output.
      """
  )

  @OptionGroup(title: "Folder options") var folder: LedgerOptions
  @Option(
    name: [.short, .long], help: ArgumentHelp("Write to this file; “-” is standard output.", valueName: "file"),
    completion: .file())
  var output = "-"
  @Flag(help: "Replace the file of --output if it exists.")
  var force = false

  func run() async throws {
    let store = try await folder.existing().ledger.store()
    do {
      try await export(store)
      try await store.close()
    } catch {
      try? await store.close()
      throw error
    }
  }

  private func export(_ store: any LedgerStore) async throws {
    var export = QueueExport()
    if output == "-" {
      try await export.run(from: store) { try OutputFile.standardOutput.write($0) }
    } else {
      let file = try PrivateFile.create(output, option: "--output", replaces: force)
      let written = file.output
      try await export.run(from: store) { try written.write($0) }
      try file.finish()
    }
    try report(export)
    // Only if some are missing: the ledger has to read all of them again.
    let known = try await store.counts(.all).values.reduce(0, +)
    guard known != export.downloads else { return }
    let damaged = try await store.damaged()
    for one in damaged {
      OutputFile.warn("left out “\(one.id.rawValue.prefix(300))”: \(one.reason)")
    }
    if known != export.downloads + damaged.count {
      OutputFile.warn(
        "the ledger has \(known) downloads now: it has changed meanwhile. Stop what uses it, and export it again")
    }
    throw ExitCode(1)
  }

  private func report(_ export: QueueExport) throws {
    let parts = [
      "\(export.downloads) exported",
      export.active > 0 ? "\(export.active) of them are running now, and wait in the export" : "",
    ]
    let summary = parts.filter { !$0.isEmpty }.joined(separator: ", ")
    if output == "-" { OutputFile.warn(summary) } else { try OutputFile.standardOutput.write(summary + "\n") }
  }
}

extension LedgerLocation {
  /// Opens the ledger for a command that needs no downloader.
  ///
  /// - Throws: ``UsageError`` when it cannot be opened.
  func store() async throws -> any LedgerStore {
    do {
      return try await stage().open()
    } catch let error as DownloadError {
      throw UsageError(error.sentence)
    }
  }
}
