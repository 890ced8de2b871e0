import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A temporary folder, which is removed at the end.
final class WorkFolder: Sendable {
  let path: String

  /// Creates a folder with a new name in an existing one.
  init(in parent: String) throws {
    let path = URL(filePath: parent).standardizedFileURL.appending(path: "downpipe-benchmark-\(UUID().uuidString)").path
    do {
      try Leftovers.shared.create(path) {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      }
    } catch let error where !(error is CancellationError) {
      throw BenchmarkError("a folder in \(parent) cannot be created: choose another one (\(error))")
    }
    self.path = path
  }

  func remove() { Leftovers.shared.remove(path) }

  deinit { remove() }

  /// An empty folder in it.
  func folder(_ name: String) throws -> String {
    let folder = "\(path)/\(name)"
    try? FileManager.default.removeItem(atPath: folder)
    // Not with its parents: the work folder may have been removed.
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    return folder
  }

  func write(_ text: String, to name: String) throws -> String {
    let file = "\(path)/\(name)"
    try text.write(toFile: file, atomically: false, encoding: .utf8)
    return file
  }

  /// The free space of its file system.
  var freeBytes: Int64 {
    let attributes = try? FileManager.default.attributesOfFileSystem(forPath: path)
    return (attributes?[.systemFreeSize] as? NSNumber)?.int64Value ?? .max
  }

  /// Writes everything to the disk, so that the next run does not wait for what this one left.
  static func flushDisks() { sync() }
}
