import ArgumentParser
import Downpipe
import Foundation

/// `downpipe list`: shows what is in a ledger. It starts nothing.
struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Show the downloads of a ledger.")

  @OptionGroup(title: "Folder options") var folder: LedgerOptions

  @Option(help: ArgumentHelp("Only those in this state (may be repeated).", valueName: "state"))
  var state: [DownloadState.Phase] = []

  @Flag(help: "Instead, unfinished bytes in the folder that no download of the ledger will use again.")
  var orphans = false

  @Flag(help: "One JSON object a line.")
  var json = false

  func run() async throws {
    if orphans {
      try await folder.withLedgerIfPresent { store, storage in try await showOrphans(store, storage) }
    } else {
      try await folder.withLedger { store, storage in try await show(store, storage) }
    }
  }

  private func showOrphans(_ store: any LedgerStore, _ storage: FileStore) async throws {
    let orphans = (try await storage.orphans(unknownTo: store) ?? []).sorted {
      ($0.key.id, $0.key.generation) < ($1.key.id, $1.key.generation)
    }
    var text = json || orphans.isEmpty ? "" : RecordTable.heading + "\n"
    for orphan in orphans { text += (json ? RecordTable.json(orphan) : RecordTable.row(orphan)) + "\n" }
    try OutputFile.standardOutput.write(text)
  }

  private func show(_ store: any LedgerStore, _ storage: FileStore) async throws {
    let page = 1000
    var offset = 0
    if !json { try OutputFile.standardOutput.write(RecordTable.heading + "\n") }
    let phases = state.isEmpty ? nil : Set(state)
    while true {
      let query = DownloadQuery(phases: phases, location: storage.location, limit: page, offset: offset)
      let records = try await store.records(query)
      var text = ""
      for record in records {
        text += (json ? RecordTable.json(record, storage) : RecordTable.row(record)) + "\n"
      }
      try OutputFile.standardOutput.write(text)
      guard records.count == page else { break }
      offset += page
    }
    // Their state is not known.
    guard state.isEmpty else { return }
    for damaged in try await store.damaged() {
      try OutputFile.standardOutput.write((json ? RecordTable.json(damaged) : RecordTable.row(damaged)) + "\n")
    }
  }
}
