import Downpipe
import Foundation

// What the library knows of its films.
extension Library {
  /// Adds a film, or updates the one with its id: another link, another name. It is never transferred twice.
  @discardableResult
  func add(_ film: Film) async throws -> Download { try await downloader.add(film.request) }

  /// The films in some phases, or all of them, in the order in which they were added.
  func films(_ phases: Set<DownloadState.Phase>? = nil) async throws -> [Film] {
    try await downloader.statuses(DownloadQuery(phases: phases, order: .arrival)).map { Film($0.request) }
  }

  /// How a film stands; `nil` when there is none.
  func status(of id: DownloadID) async throws -> DownloadStatus? { try await downloader.status(of: id) }

  /// Deletes a film: a transfer is ended first, then record, partial and file go together.
  func delete(_ id: DownloadID) async throws { try await downloader.remove(id, deletingFile: true) }

  /// Gives a film another name and type. The file of a finished one is renamed.
  func update(_ id: DownloadID, name: String, type: String) async throws {
    guard let old = try await downloader.status(of: id) else { return }
    var film = Film(old.request)
    (film.name, film.type) = (name, type)
    var request = old.request
    request.destination.name = film.fileName
    request.metadata.merge(film.request.metadata) { $1 }
    if let artifact = old.artifact, let url = artifact.url {
      let new = url.deletingLastPathComponent().appending(path: film.fileName)
      guard !FileManager.default.fileExists(atPath: new.path) else {
        throw DownloadError(.alreadyExists, "there is a file “\(film.fileName)” already: choose another name")
      }
      request.tags.insert(LibraryStore.renamed)
      request.expectedSize = artifact.size.bytes
      request.priority = .high
    }
    // The ledger has the new name before the file does: after a crash in between, opening the library does the rest.
    try await downloader.add(request)
    try await finishRenaming()
  }

  /// Renames the files of finished films whose names in the ledger are other ones.
  func finishRenaming() async throws {
    for film in try await downloader.statuses(DownloadQuery(phases: [.finished], tag: LibraryStore.renamed)) {
      guard let old = film.artifact?.url, let name = film.request.destination.name, name != old.lastPathComponent
      else { continue }
      let new = old.deletingLastPathComponent().appending(path: name)
      if FileManager.default.fileExists(atPath: old.path) { try FileManager.default.moveItem(at: old, to: new) }
      // The file is no longer where the ledger says; added again, the film is found under its new name.
      try await downloader.add(film.request)
    }
  }
}
