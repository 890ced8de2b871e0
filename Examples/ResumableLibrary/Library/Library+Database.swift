import Downpipe
import Foundation

// The records of the films.
extension Library {
  /// Adds a film, or updates the link and name of the film with its id. A film is not transferred twice.
  @discardableResult
  func add(_ film: Film) async throws -> Download { try await downloader.add(film.request) }

  /// The films in the given phases, or all films, in the order of their addition.
  func films(_ phases: Set<DownloadState.Phase>? = nil) async throws -> [Film] {
    try await downloader.statuses(DownloadQuery(phases: phases, order: .arrival)).map { Film($0.request) }
  }

  /// The status of a film; `nil` when it does not exist.
  func status(of id: DownloadID) async throws -> DownloadStatus? { try await downloader.status(of: id) }

  /// Deletes a film: stops its transfer, then deletes its record, partial and file.
  func delete(_ id: DownloadID) async throws { try await downloader.remove(id, deletingFile: true) }

  /// Changes the name and type of a film. The file of a finished film is renamed.
  func update(_ id: DownloadID, name: String, type: String) async throws {
    let status = try await downloader.rename(id, to: "\(name).\(type)")
    let new = status.name ?? name
    try await downloader.update(id) { request in
      request.metadata["name"] = String(new.dropLast(type.count + 1))
      request.metadata["type"] = type
    }
  }
}
