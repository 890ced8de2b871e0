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
    let status = try await downloader.rename(id, to: "\(name).\(type)")
    let new = status.name ?? name
    try await downloader.update(id) { request in
      request.metadata["name"] = String(new.dropLast(type.count + 1))
      request.metadata["type"] = type
    }
  }
}
