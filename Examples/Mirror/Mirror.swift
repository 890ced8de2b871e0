import Downpipe
import Foundation

/// A folder with the files of a server, as its manifest lists them. The output of `sha256sum` is a manifest: a line for
/// each file, with its digest and its path below the folder of the manifest.
struct Mirror: Sendable {
  let downloader: Downloader
  private let folder: String, manifest: URL

  init(
    _ folder: String, of manifest: URL, source: some Source = HTTPSource(),
    options: DownloaderOptions = DownloaderOptions()
  ) async throws {
    (self.folder, self.manifest) = (folder, manifest)
    downloader = try await Downloader(options: options) {
      source
      Limits(concurrent: 8)
      Retry(.exponential(attempts: 5))
      FileStore(folder, onConflict: .replace)
      #if SQLite
        SQLiteLedger("\(folder)/.downpipe/ledger.sqlite")
      #endif
      VerifyChecksum()
    }
  }

  /// Brings the folder up to date: fetches new and changed files, and deletes everything that is not in the manifest. A
  /// changed file stays until its new version is complete. After a crash, the next call does the rest.
  /// - Returns: The downloads that have failed, with their errors.
  func update() async throws -> [DownloadStatus] {
    let list = try await downloader.add(
      DownloadRequest(
        manifest, id: "/", destination: .init(directory: ".manifest")
      ).with(\.maximumSize, Self.largest).with(\.refresh, .ifChanged)
    ).value
    let requests = try requests(in: String(decoding: list.read(first: Int(Self.largest)), as: UTF8.self))
    let known = try await downloader.statuses(DownloadQuery(tag: "file"))
    try await downloader.removeAll(.ids(Set(known.map(\.id)).subtracting(requests.map(\.id))))
    // First: the folders of new files may have the names of old files.
    try deleteAll(except: requests)
    try await downloader.add(contentsOf: requests)
    try await downloader.waitUntilIdle()
    return try await downloader.statuses(DownloadQuery(phases: [.failed], tag: "file"))
  }

  private static let largest: Int64 = 64 << 20

  private func deleteAll(except requests: [DownloadRequest]) throws {
    let files = Set(requests.map(\.id.rawValue))
    var folders: Set<String> = [".downpipe", ".manifest"]
    for path in files {
      for slash in path.indices where path[slash] == "/" { folders.insert(String(path[..<slash])) }
    }
    for path in try FileManager.default.subpathsOfDirectory(atPath: folder).sorted(by: >)
    where ![".downpipe/", ".manifest/"].contains(where: path.hasPrefix) {
      let kind = try FileManager.default.attributesOfItem(atPath: folder + "/" + path)[.type] as? FileAttributeType
      if (kind == .typeDirectory ? folders : files).contains(path) { continue }
      try FileManager.default.removeItem(atPath: folder + "/" + path)
    }
  }

  private func requests(in text: String) throws -> [DownloadRequest] {
    let requests = try text.split(separator: "\n").map { line -> DownloadRequest in
      let parts = line.split(separator: " ", maxSplits: 1)
      let path = parts.last?.drop { " *".contains($0) } ?? ""
      let folders = path.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
      guard parts.count == 2, !folders.contains(where: { ["", ".", ".."].contains($0) }) else {
        throw DownloadError(.unsafePath, "the manifest has the path “\(path.prefix(200))”")
      }
      return DownloadRequest(
        folders.reduce(manifest.deletingLastPathComponent()) { $0.appending(component: $1) },
        id: DownloadID(String(path)), tags: ["file"],
        destination: .init(
          directory: folders.count > 1 ? folders.dropLast().joined(separator: "/") : nil, name: folders.last)
      ).with(\.expectedDigests, [try FileDigest(parsing: "sha256=\(parts[0])")])
    }
    // A server that has lost its files is no reason to delete them here.
    guard !requests.isEmpty else { throw DownloadError(.invalidResponse, "the manifest lists no files") }
    return requests
  }
}
