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
  @OptionGroup var outside: OutsideOptions

  func validate() throws {
    if [all, orphans, !ids.isEmpty].count(where: { $0 }) != 1 {
      throw ValidationError("name the downloads by their ids, or say --all, or --orphans")
    }
  }

  func run() async throws {
    let (directory, ledger) = try folder.existing()
    let scope = outside.scope(directory: directory, ledger: ledger)
    let isComplete = try await folder.withLedger { store, storage in
      orphans ? try await removeOrphans(store, storage) : try await remove(from: store, storage, scope)
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
  private func remove(from store: any LedgerStore, _ storage: FileStore, _ scope: PathScope) async throws -> Bool {
    if files { try await refuseOutside(store, storage, scope) }
    let known = try await existing(store, storage)
    // What a process that died was working on is nobody's any more.
    _ = try await store.reclaim(at: Date())

    var removed = 0
    var left = 0
    var isComplete = true
    func remove(_ ids: [DownloadID]) async throws {
      let records = try await store.remove(.ids(ids), limit: ids.count)
      for record in records where await !removeFiles(of: record, storage, scope) { isComplete = false }
      removed += records.count
      left += ids.count - records.count
    }
    if all {
      try await remove(store.damaged().map(\.id))
      // Those that stay keep their places in the order.
      while true {
        let page = try await store.records(DownloadQuery(location: storage.location, limit: 1000, offset: left)).map(\.id)
        if page.isEmpty { break }
        try await remove(page)
      }
      if left > 0 {
        OutputFile.complain("\(left) stay: another process is working on them")
        isComplete = false
      }
    } else {
      try await remove(known.map { DownloadID($0) })
    }
    for id in ids {
      if !known.contains(id) {
        OutputFile.complain("there is no download “\(id)”")
        isComplete = false
      } else if try await store.records(of: [DownloadID(id)]).first != nil {
        OutputFile.complain("“\(id)” stays: another process is working on it")
        isComplete = false
      }
    }
    try OutputFile.standardOutput.write("removed \(removed)\n")
    return isComplete
  }

  /// The named downloads of this folder, and those whose record is damaged: these can still be removed.
  private func existing(_ store: any LedgerStore, _ storage: FileStore) async throws -> Set<String> {
    let named = ids.map { DownloadID($0) }
    let records = try await store.records(of: named).filter { $0.location == nil || $0.location == storage.location }
    let damaged = try await store.damaged().map(\.id).filter(named.contains)
    return Set((records.map(\.id) + damaged).map(\.rawValue))
  }

  /// Looks at all files before the first one is removed: the ledger names them, and may not be the user's own.
  private func refuseOutside(_ store: any LedgerStore, _ storage: FileStore, _ scope: PathScope) async throws {
    guard scope != .everywhere else { return }
    var count = 0
    var example = ""
    func look(at record: DownloadRecord) throws {
      guard let artifact = try finished(record, storage), let path = artifact.path, !scope.contains(entry: path)
      else { return }
      count += 1
      if example.isEmpty { example = path }
    }
    if all {
      let page = 1000
      var offset = 0
      while true {
        let records = try await store.records(
          DownloadQuery(phases: [.finished], location: storage.location, limit: page, offset: offset))
        for record in records { try look(at: record) }
        guard records.count == page else { break }
        offset += page
      }
    } else {
      for record in try await store.records(of: ids.map { DownloadID($0) }) { try look(at: record) }
    }
    guard count > 0 else { return }
    let what = count == 1 ? "“\(example)” is" : "\(count) files, “\(example)” among them, are"
    throw UsageError(
      "\(what) outside of “\(storage.root)”, and nothing was removed: say --allow-outside if the ledger is yours, "
        + "or leave --files out")
  }

  /// The finished file of a record; `nil` when there is none.
  private func finished(_ record: DownloadRecord, _ storage: FileStore) throws -> Artifact? {
    guard record.phase == .finished, let stored = record.steps.artifact, let path = stored.path else { return nil }
    return Artifact(
      kind: stored.kind, location: .path(try storage.path(forStored: path)), name: stored.name,
      size: ByteCount(stored.size), modifiedAt: stored.modifiedAt)
  }

  /// - Returns: whether nothing is left.
  private func removeFiles(of record: DownloadRecord, _ storage: FileStore, _ scope: PathScope) async -> Bool {
    do {
      try await storage.removePartial(record.partialKey)
      if files, let artifact = try finished(record, storage) {
        // It may have been finished since all of them were looked at.
        try scope.check(artifact)
        try await storage.remove(artifact)
      }
      return true
    } catch {
      OutputFile.complain("\(record.id): \(DownloadError(error, as: .storage).message)")
      return false
    }
  }
}
