public import Foundation
import Synchronization

/// A new, empty folder that is deleted with its contents by ``close()``, or when the last reference is released.
///
/// ```swift
/// let folder = try TemporaryFolder()
/// let store = FileStore(folder.path)
/// ```
/// Keep a reference while the folder is used, for example with `defer { folder.close() }`.
public final class TemporaryFolder: Sendable {
  /// The absolute path of the folder, without symbolic links and without a trailing slash.
  public let path: String
  private let isClosed = Atomic(false)

  /// Creates a folder in the system's folder for temporary files.
  /// - Throws: The error of `FileManager` when the folder cannot be created.
  public init() throws {
    let root = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
    let url = root.appending(path: "downpipe-\(UUID().uuidString)", directoryHint: .notDirectory)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = url.path(percentEncoded: false)
  }

  deinit { close() }

  /// The file URL of the folder.
  public var url: URL { URL(filePath: path, directoryHint: .isDirectory) }

  /// The path of an item in the folder, which need not exist.
  public func path(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file, creates missing parent folders, and returns the path of the file.
  @discardableResult
  public func write(_ bytes: [UInt8], to name: String) throws -> String {
    let file = URL(filePath: path(name), directoryHint: .notDirectory)
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: file)
    return path(name)
  }

  /// Reads a file.
  public func read(_ name: String) throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(filePath: path(name), directoryHint: .notDirectory)))
  }

  /// The relative paths of all files and folders in the folder, sorted.
  public func contents() throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: path).sorted()
  }

  /// Deletes the folder with its contents. A second call has no effect.
  public func close() {
    guard !isClosed.exchange(true, ordering: .relaxed) else { return }
    try? FileManager.default.removeItem(atPath: path)
  }
}
