/// A file that looks like a copy of a finished download's file; see ``Downloader/copies()``.
public struct StrayCopy: Sendable, Hashable {
  /// The id of the download.
  public let id: DownloadID
  /// The file in this downloader's storage.
  public let artifact: Artifact
}

extension Downloader {
  /// Returns the files in the storage that are perhaps copies of finished downloads, whose own files are in other storages.
  ///
  /// A process that is killed after it has published a file, and before the ledger knows of it, leaves such a copy when another
  /// downloader has taken over the download. They are found by path and size, so that a file of the user may be among them:
  /// nothing removes them. Only downloads that were added for no ``Storage/location`` can have copies. Files that other
  /// downloads have in this storage are left out.
  ///
  /// A run that still works when the ledger refuses its outcome removes its own copy, once the other owner has finished.
  ///
  /// All records are read, page by page.
  /// - Throws: ``DownloadError`` with `.ledger` or `.shutDown`.
  public func copies() async throws -> [StrayCopy] { try await engine.copies() }
}
