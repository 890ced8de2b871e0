import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The folders of one scenario of the kill test. After a failure they stay: their files are needed to find the cause.
/// They are deleted otherwise.
struct KillTestFolder: Sendable {
  /// The parent of all other folders.
  let path: String
  /// The folder that finished files are moved into; on another file system, if asked for and available.
  let destination: String

  /// The folder of the command.
  var work: String { path + "/out" }

  init(destinationElsewhere: Bool) throws {
    let temporary = FileManager.default.temporaryDirectory.resolvingSymlinksInPath().path
    let name = "downpipe-kill-test-\(UUID().uuidString)"
    path = temporary + "/" + name
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    let other = "/dev/shm"
    if destinationElsewhere, let here = Self.device(temporary), let there = Self.device(other), here != there {
      destination = other + "/" + name
      try FileManager.default.createDirectory(atPath: destination, withIntermediateDirectories: true)
    } else {
      destination = path + "/done"
    }
  }

  /// Deletes everything.
  func delete() throws {
    try FileManager.default.removeItem(atPath: path)
    if destination != path + "/done" { try FileManager.default.removeItem(atPath: destination) }
  }

  /// Returns the paths of all files and folders in a folder, those of folders with a slash; none for a missing folder.
  static func names(_ folder: String) -> [String] {
    ((try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []).sorted().map { name in
      type(folder + "/" + name) == .typeDirectory ? name + "/" : name
    }
  }

  /// The same, with the sizes of files.
  static func listing(_ folder: String) -> [String] {
    names(folder).map { name in
      let path = folder + "/" + name
      return switch type(path) {
      case .typeDirectory?: name
      case .typeSymbolicLink?: name + " (link)"
      default: "\(name) (\((try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? Int ?? -1))"
      }
    }
  }

  private static func type(_ path: String) -> FileAttributeType? {
    (try? FileManager.default.attributesOfItem(atPath: path))?[.type] as? FileAttributeType
  }

  private static func device(_ path: String) -> UInt64? {
    var status = stat()
    guard stat(path, &status) == 0, access(path, W_OK) == 0 else { return nil }
    return UInt64(status.st_dev)
  }
}
