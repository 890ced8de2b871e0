import ArgumentParser
import Downpipe
import Foundation

/// `downpipe list`: shows the records of a ledger, and starts nothing.
struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the downloads of a ledger.",
    discussion: """
      The list shows why each download has to wait now. The ledger does not know the options of a command that waits: \
      give the same options for when to download to see which of them holds a download.
      """
  )

  @OptionGroup(title: "Folder options") var folder: LedgerOptions

  @OptionGroup(title: "Options for when to download") var gates: GateOptions

  @Option(help: ArgumentHelp("List only downloads in this state. Can be given several times.", valueName: "state"))
  var state: [DownloadState.Phase] = []

  @Flag(
    help: ArgumentHelp(
      """
      List orphans instead: unfinished files in the folder that no download of the ledger uses, and, with a database, files \
      that another worker has finished in its folder (“copy”: with the same name and size).
      """))
  var orphans = false

  @Flag(help: "Print one JSON object on each line.")
  var json = false

  @OptionGroup var urls: URLOptions

  func run() async throws {
    try await folder.withDownloader(needsLedger: !orphans) { downloader in
      if orphans { try await showOrphans(downloader) } else { try await show(downloader) }
    }
  }

  private func showOrphans(_ downloader: Downloader) async throws {
    let orphans = try await downloader.orphans().sorted {
      ($0.key.id, $0.key.generation) < ($1.key.id, $1.key.generation)
    }
    var text = json || orphans.isEmpty ? "" : RecordTable.heading + "\n"
    for orphan in orphans { text += (json ? RecordTable.json(orphan) : RecordTable.row(orphan)) + "\n" }
    // In a ledger of one machine, each download belongs to a folder.
    let isShared = try folder.location(directory: "/")?.isShared ?? false
    let copies = try await isShared ? downloader.copies() : []
    if !json, text.isEmpty, !copies.isEmpty { text = RecordTable.heading + "\n" }
    for copy in copies { text += (json ? RecordTable.json(copy) : RecordTable.row(copy)) + "\n" }
    try OutputFile.standardOutput.write(text)
  }

  private func show(_ downloader: Downloader) async throws {
    let page = 1000
    var query = DownloadQuery(phases: state.isEmpty ? nil : Set(state), limit: page)
    let active = DownloadQuery(phases: [.transferring, .processing], limit: page)
    let reasons = ListedReasons(
      rules: try await GateRules(gates.settings.gates(directory: Folder.absolutePath(folder.directory))),
      running: RunningDownloads(elsewhere: try await downloader.statuses(active)))
    if !json { try OutputFile.standardOutput.write(RecordTable.heading + "\n") }
    while true {
      let statuses = try await downloader.statuses(query)
      var text = ""
      for status in statuses {
        let reason = reasons.reason(for: status)
        let style = urls.style
        text += json ? RecordTable.json(status, style, reason: reason) : RecordTable.row(status, style, reason: reason)
        text += "\n"
      }
      try OutputFile.standardOutput.write(text)
      guard statuses.count == page else { break }
      query.offset += page
    }
    // Damaged records have no known state.
    guard state.isEmpty else { return }
    for damaged in try await downloader.damaged() {
      try OutputFile.standardOutput.write((json ? RecordTable.json(damaged) : RecordTable.row(damaged)) + "\n")
    }
  }
}
