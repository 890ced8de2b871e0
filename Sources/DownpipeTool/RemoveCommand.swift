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
    let isComplete = try await folder.withDownloader(scope: scope) { downloader in
      if orphans { return try await removeOrphans(downloader) }
      if files { try await refuseOutside(downloader, scope, root: directory) }
      return all ? try await removeAll(downloader) : try await removeNamed(downloader)
    }
    if !isComplete { throw ExitCode(1) }
  }

  private func removeOrphans(_ downloader: Downloader) async throws -> Bool {
    let found = try await downloader.orphans()
    let removed = try await downloader.removeOrphans(found)
    try OutputFile.standardOutput.write("removed \(removed)\n")
    return removed == found.count
  }

  /// - Returns: whether everything is gone.
  private func removeAll(_ downloader: Downloader) async throws -> Bool {
    var isComplete = true
    let before = try await downloader.counts().values.reduce(0, +) + downloader.damaged().count
    do { try await downloader.removeAll(deletingFiles: files) } catch { isComplete = complain(error) }
    // Of other folders some may stay in the same ledger.
    let left = try await downloader.statuses().count
    if left > 0 {
      OutputFile.complain("\(left) stay: another process is working on them")
      isComplete = false
    }
    let after = try await downloader.counts().values.reduce(0, +) + downloader.damaged().count
    try OutputFile.standardOutput.write("removed \(before - after)\n")
    return isComplete
  }

  /// - Returns: whether everything that was meant is gone.
  private func removeNamed(_ downloader: Downloader) async throws -> Bool {
    var removed = 0
    var isComplete = true
    for id in ids {
      do {
        if try await downloader.remove(DownloadID(id), deletingFile: files) {
          removed += 1
        } else {
          let isThere = try await downloader.contains(DownloadID(id))
          OutputFile.complain(
            isThere ? "“\(id)” stays: another process is working on it" : "there is no download “\(id)”")
          isComplete = false
        }
      } catch {
        removed += try await downloader.contains(DownloadID(id)) ? 0 : 1
        isComplete = complain(error, id)
      }
    }
    try OutputFile.standardOutput.write("removed \(removed)\n")
    return isComplete
  }

  private func complain(_ error: any Error, _ id: String? = nil) -> Bool {
    OutputFile.complain((id.map { "\($0): " } ?? "") + DownloadError(error, as: .storage).message)
    return false
  }

  /// Looks at all files before the first one is removed: the ledger names them, and may not be the user's own.
  private func refuseOutside(_ downloader: Downloader, _ scope: PathScope, root: String) async throws {
    guard scope != .everywhere else { return }
    var outside: [String] = []
    func look(at statuses: some Sequence<DownloadStatus>) {
      outside += statuses.compactMap { $0.artifact?.path }.filter { !scope.contains(entry: $0) }
    }
    if all {
      var page = DownloadQuery(phases: [.finished], limit: 1000)
      while true {
        let statuses = try await downloader.statuses(page)
        look(at: statuses)
        guard statuses.count == page.limit else { break }
        page.offset += statuses.count
      }
    } else {
      look(at: try await downloader.statuses(of: ids.map { DownloadID($0) }).values)
    }
    guard let example = outside.first else { return }
    let what = outside.count == 1 ? "“\(example)” is" : "\(outside.count) files, “\(example)” among them, are"
    throw UsageError(
      "\(what) outside of “\(root)”, and nothing was removed: say --allow-outside if the ledger is yours, "
        + "or leave --files out")
  }
}
