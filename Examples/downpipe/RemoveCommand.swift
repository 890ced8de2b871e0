import ArgumentParser
import Downpipe
import Foundation

/// `downpipe remove`: forgets downloads, and removes what is on disk of unfinished ones.
struct RemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Forget downloads.",
    discussion: "The bytes of unfinished files are removed. Finished files stay unless --files is given."
  )

  @Argument(help: ArgumentHelp("The id of a download, as “downpipe list” shows it.", valueName: "id"))
  var ids: [String] = []

  @Flag(help: "Every download of the ledger.")
  var all = false

  @Flag(help: "Instead, unfinished bytes in the folder that no download of the ledger will use again.")
  var orphans = false

  @Flag(help: "Remove finished files too.")
  var files = false

  @OptionGroup(title: "Folder options") var folder: LedgerOptions

  func validate() throws {
    if [all, orphans, !ids.isEmpty].count(where: { $0 }) != 1 {
      throw ValidationError("name the downloads by their ids, or say --all, or --orphans")
    }
  }

  func run() async throws {
    let isComplete = try await folder.withLedger { store, storage in
      orphans ? try await removeOrphans(store, storage) : try await remove(from: store, storage)
    }
    if !isComplete { throw ExitCode(1) }
  }

  private func removeOrphans(_ store: any LedgerStore, _ storage: FileStore) async throws -> Bool {
    let found = try await storage.orphans(unknownTo: store) ?? []
    let removed = try await storage.remove(found, unknownTo: store)
    try OutputFile.standardOutput.write("removed \(removed)\n")
    return removed == found.count
  }

  /// - Returns: whether everything that was meant is gone.
  private func remove(from store: any LedgerStore, _ storage: FileStore) async throws -> Bool {
    let selection: LedgerSelection = all ? .all : .ids(ids.map { DownloadID($0) })
    let known = all ? [] : try await existing(store)
    // What a process that died was working on is nobody's any more.
    _ = try await store.reclaim(at: Date())

    var removed = 0
    var isComplete = true
    while true {
      let page = 1000
      let records = try await store.remove(selection, limit: page)
      for record in records {
        removed += 1
        if await !removeFiles(of: record, storage) { isComplete = false }
      }
      guard records.count == page else { break }
    }

    if all {
      let left = try await store.counts(tag: nil).values.reduce(0, +)
      if left > 0 {
        OutputFile.complain("\(left) stay: another process is working on them")
        isComplete = false
      }
    }
    for id in ids {
      if !known.contains(id) {
        OutputFile.complain("there is no download “\(id)”")
        isComplete = false
      } else if try await store.record(DownloadID(id)) != nil {
        OutputFile.complain("“\(id)” stays: another process is working on it")
        isComplete = false
      }
    }
    try OutputFile.standardOutput.write("removed \(removed)\n")
    return isComplete
  }

  private func existing(_ store: any LedgerStore) async throws -> Set<String> {
    var known = Set<String>()
    for id in ids where try await store.record(DownloadID(id)) != nil { known.insert(id) }
    return known
  }

  /// - Returns: whether nothing is left.
  private func removeFiles(of record: DownloadRecord, _ storage: FileStore) async -> Bool {
    do {
      try await storage.removePartial(record.partialKey)
      if files, record.phase == .finished, let stored = record.steps.artifact, let path = stored.path {
        let artifact = Artifact(
          kind: stored.kind, location: .path(try storage.path(forStored: path)), name: stored.name,
          size: ByteCount(stored.size))
        try await storage.remove(artifact)
      }
      return true
    } catch {
      OutputFile.complain("\(record.id): \(DownloadError(error, as: .storage).message)")
      return false
    }
  }
}
