public import Foundation
import Synchronization

/// A new, empty folder that is deleted with all that is in it: on ``close()``, or when the last
/// reference to it goes.
///
/// ```swift
/// let folder = try TemporaryFolder()
/// let store = FileStore(folder.path)
/// ```
/// Keep the reference for as long as the folder is used: `defer { folder.close() }` does.
public final class TemporaryFolder: Sendable {
  /// The folder's absolute path, without symbolic links and without a slash at the end.
  public let path: String
  private let isClosed = Atomic(false)

  /// Makes a folder below the system's folder for temporary files.
  /// - Throws: what `FileManager` throws when it cannot be made.
  public init() throws {
    let root = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
    let url = root.appending(path: "downpipe-\(UUID().uuidString)", directoryHint: .notDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = url.path(percentEncoded: false)
  }

  deinit { close() }

  /// The folder's URL.
  public var url: URL { URL(filePath: path, directoryHint: .isDirectory) }

  /// The path of something in the folder, whether it exists or not.
  public func path(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file, making the folders on its way, and returns its path.
  @discardableResult
  public func write(_ bytes: [UInt8], to name: String) throws -> String {
    let file = URL(filePath: path(name), directoryHint: .notDirectory)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: file)
    return path(name)
  }

  /// The bytes of a file.
  public func read(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(filePath: path(name), directoryHint: .notDirectory)))
  }

  /// The relative paths of every file and folder in it, sorted.
  public func contents() throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: path).sorted()
  }

  /// Deletes the folder and all that is in it. Nothing happens the second time.
  public func close() {
    guard !isClosed.exchange(true, ordering: .relaxed) else { return }
    try? FileManager.default.removeItem(atPath: path)
  }
}
