import Downpipe

/// A download whose links expire during the transfer: the code that an app needs.
enum FilmDownload {
  /// Downloads the film into a folder, with as many links as necessary.
  ///
  /// - Returns: The final status, with the number of bytes fetched.
  static func run(
    into folder: String, links: LinkService, time: ServerTime, watchedBy observer: some Observer
  ) async throws -> DownloadStatus {
    let downloader = try await Downloader {
      HTTPSource()
      RefreshURL(margin: .zero, now: time.now) { _ in FreshLink(await links.freshLink()) }
      Retry(.constant(.zero, attempts: 4))
      FileStore(folder, onConflict: .replace)
      observer
    }
    do {
      let film = try await downloader.add(await links.freshLink())
      _ = try await film.value
      let status = try await film.status
      await downloader.shutdown()
      return status
    } catch {
      await downloader.shutdown()
      throw error
    }
  }
}
