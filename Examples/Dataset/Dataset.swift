import Downpipe
import Foundation

/// Files that a program needs and does not bring along, such as data sets and models: each is fetched by its name when it
/// is needed first, from the first mirror that has it, checked, decompressed and kept.
struct Dataset: Sendable {
  let downloader: Downloader
  private let mirrors: [URL]
  private let files: [String: String]

  /// - Parameters:
  ///   - folder: The cache, which any number of processes may share.
  ///   - mirrors: The folders on servers that have the files, the best first.
  ///   - files: The SHA-256 of each file, in hexadecimal; a new one replaces the file in the cache.
  init(
    _ folder: String, mirrors: [URL], files: [String: String], source: some Source = HTTPSource(),
    options: DownloaderOptions = DownloaderOptions()
  ) async throws {
    (self.mirrors, self.files) = (mirrors, files)
    downloader = try await Downloader(options: options) {
      source
      Retry(.exponential(attempts: 5))
      FileStore(folder, onConflict: .replace)
      #if SQLite
        SQLiteLedger("\(folder)/.downpipe/ledger.sqlite")
      #endif
      VerifyChecksum()
      Gunzip().when { $0.request.url.pathExtension == "gz" }
    }
  }

  /// Returns a file of the cache, and fetches it before if it is not there. If two processes ask for the same file, one of
  /// them fetches it, and both get it.
  func fetch(_ name: String) async throws -> URL? {
    guard let digest = files[name] else { throw DownloadError(.invalidRequest, "there is no file “\(name)”") }
    let places = mirrors.map { $0.appending(path: name) }
    // `Gunzip` removes the `.gz` of the name.
    let request = DownloadRequest(
      places[0], id: DownloadID(name), mirrors: Array(places.dropFirst()),
      destination: .init(name: name, nameUse: .fallback)
    ).with(\.expectedDigests, [try FileDigest(parsing: "sha256=\(digest)")])
    return try await downloader.add(request).value.url
  }

  /// Returns a file that changes, and therefore has no digest: the present one if a server can be asked, otherwise the one
  /// in the cache.
  func latest(_ name: String) async throws -> URL? {
    let download = try await downloader.add(
      DownloadRequest(
        mirrors[0].appending(path: name), id: DownloadID("latest:\(name)"), destination: .init(directory: "latest")
      ).with(\.refresh, .whenStale))
    do { return try await download.value.url } catch {
      guard let kept = try await download.status.earlierArtifact else { throw error }
      return kept.url
    }
  }
}
