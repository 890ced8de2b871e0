package import DownpipeCore
import Synchronization

/// The file that a follower writes in the workspace: made with the first bytes, and removed unless it was committed.
///
/// It is the ``WorkspaceFile`` of its step, made while the input is not complete. The step makes another one at the same
/// place only after this one was discarded.
package final class FollowerOutput: Sendable {
  private let workspace: String
  private let folder: String
  private let file = Mutex<WorkspaceFile?>(nil)

  /// - Parameters:
  ///   - workspace: The folder of the download's steps; it exists.
  ///   - folder: The name of the folder for the output.
  package init(in workspace: String, folder: String) {
    self.workspace = workspace
    self.folder = folder
  }

  /// Appends bytes.
  ///
  /// - Throws: ``DownloadError`` with `.noSpace`, `.permission` or `.storage`.
  package func write(_ bytes: RawSpan) throws {
    try file.withLock { file in
      if file == nil { file = try WorkspaceFile(in: workspace, folder: folder, beside: nil) }
      try file?.write(bytes)
    }
  }

  /// Gives the file its name; see ``WorkspaceFile/commit(as:durability:)``.
  package func commit(as name: String, durability: Durability) throws -> (path: String, size: Int64) {
    try file.withLock { file in
      var output = try file.take() ?? WorkspaceFile(in: workspace, folder: folder, beside: nil)
      return (try output.commit(as: name, durability: durability), output.size)
    }
  }

  /// Removes the file, unless it was committed.
  package func discard() { file.withLock { $0 = nil } }
}

/// Places for followers that hold much while they wait for bytes, such as a thread or the memory of a decoder.
///
/// Their number is limited, so that a thousand slow transfers hold no more than a few. A step without a place reads its
/// input after the transfer.
package final class FollowerPlaces: Sendable {
  /// A place, which is free again when the last reference is released.
  package final class Place: Sendable {
    private let places: FollowerPlaces

    fileprivate init(_ places: FollowerPlaces) { self.places = places }

    deinit { places.free.add(1, ordering: .relaxed) }
  }

  private let free: Atomic<Int>

  package init(_ count: Int) { free = Atomic(count) }

  /// Takes a place; `nil` if all are taken.
  package func take() -> Place? {
    if free.subtract(1, ordering: .relaxed).newValue >= 0 { return Place(self) }
    free.add(1, ordering: .relaxed)
    return nil
  }
}
