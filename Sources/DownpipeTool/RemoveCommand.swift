import ArgumentParser
import Downpipe
import Foundation

/// `downpipe remove`: removes downloads from a ledger, with their unfinished files.
struct RemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove downloads from a ledger.",
    discussion: "Unfinished files are deleted. Finished files stay unless --files is given."
  )

  @Argument(help: ArgumentHelp("The ids of the downloads, as in “downpipe list”.", valueName: "id"))
  var ids: [String] = []

  @Flag(help: "Remove all downloads of the ledger.")
  var all = false

  @Flag(help: "Delete orphans instead: unfinished files in the folder that no download of the ledger uses.")
  var orphans = false

  @Flag(help: "Delete finished files too.")
  var files = false

  @OptionGroup(title: "Folder options") var folder: LedgerOptions
  @OptionGroup var outside: OutsideOptions

  func validate() throws {
    if [all, orphans, !ids.isEmpty].count(where: { $0 }) != 1 {
      throw ValidationError("give either the ids of downloads, or --all, or --orphans")
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

  /// - Returns: Whether all downloads were removed.
  private func removeAll(_ downloader: Downloader) async throws -> Bool {
    var isComplete = true
    let before = try await downloader.counts().values.reduce(0, +) + downloader.damaged().count
    do { try await downloader.removeAll(deletingFiles: files) } catch { isComplete = warn(error) }
    // Downloads of other folders may stay in the same ledger.
    let left = try await downloader.statuses().count
    if left > 0 {
      OutputFile.warn("\(left) not removed: another process is working on them")
      isComplete = false
    }
    let after = try await downloader.counts().values.reduce(0, +) + downloader.damaged().count
    try OutputFile.standardOutput.write("removed \(before - after)\n")
    return isComplete
  }

  /// - Returns: Whether all named downloads were removed.
  private func removeNamed(_ downloader: Downloader) async throws -> Bool {
    var removed = 0
    var isComplete = true
    for id in ids {
      do {
        if try await downloader.remove(DownloadID(id), deletingFile: files) {
          removed += 1
        } else {
          let exists = try await downloader.contains(DownloadID(id))
          let shown = "“\(id.redactingURLs)”"
          OutputFile.warn(
            exists ? "\(shown) not removed: another process is working on it" : "the ledger has no download \(shown)")
          isComplete = false
        }
      } catch {
        removed += try await downloader.contains(DownloadID(id)) ? 0 : 1
        isComplete = warn(error, id)
      }
    }
    try OutputFile.standardOutput.write("removed \(removed)\n")
    return isComplete
  }

  private func warn(_ error: any Error, _ id: String? = nil) -> Bool {
    OutputFile.warn((id.map { "\($0.redactingURLs): " } ?? "") + DownloadError(error, as: .storage).message)
    return false
  }

  /// Checks all paths before the first file is deleted: the ledger may come from another user.
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
    let what = outside.count == 1 ? "“\(example)” is" : "\(outside.count) files, such as “\(example)”, are"
    throw UsageError(
      "\(what) outside “\(root)”, and nothing was removed: add --allow-outside if the ledger is yours, or leave out "
        + "--files")
  }
}
