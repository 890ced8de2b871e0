import Downpipe

/// Deletes the partials that a worker has left in its folder, of downloads that another worker has finished meanwhile: the
/// worker was killed, or its lease has expired.
struct LeftPartials: Sendable {
  private static let interval: Duration = .seconds(60)
  let downloader: Downloader

  /// Deletes them now and at intervals, until the task is cancelled.
  func watch() async {
    repeat { await delete() } while (try? await Task.sleep(for: Self.interval)) != nil
  }

  /// Deletes those that there are. What cannot be deleted stays for the next time.
  func delete() async {
    guard let orphans = try? await downloader.orphans(), !orphans.isEmpty,
      let statuses = try? await downloader.statuses(of: orphans.map(\.key.id))
    else { return }
    // Partials of downloads that the ledger does not know may be those of another ledger for the same folder.
    let left = orphans.filter { orphan in
      statuses[orphan.key.id].map { [.finished, .cancelled].contains($0.state.phase) } ?? false
    }
    _ = try? await downloader.removeOrphans(left)
  }
}
