package import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The output of a step: written in the workspace under a temporary name, renamed when it is complete, and removed
/// otherwise.
///
/// It has a folder of its own in the workspace. So a name that a server has chosen cannot replace another file there, and
/// the next run finds and removes what a run left that ended with its process.
package struct WorkspaceFile: ~Copyable {
  private static let temporaryName = ".unpacking"

  private let system = FileSystem.system
  private let folder: String
  private let temporaryPath: String
  private let file: OpenFile
  /// The number of bytes that were written.
  package private(set) var size: Int64 = 0
  private var isCommitted = false

  /// Opens an empty file.
  ///
  /// - Parameters:
  ///   - workspace: The folder of the download's steps; it exists.
  ///   - name: The name of the folder for the output.
  ///   - input: The path of the step's input, which stays as it is.
  /// - Throws: ``DownloadError`` with `.noSpace`, `.permission` or `.storage`.
  package init(in workspace: String, folder name: String, beside input: String?) throws {
    let system = FileSystem.system
    // The input of a second step of one kind is the output of the first one, in the folder of the first one.
    let first = workspace + "/" + name
    let folder = input.map { isFile($0, in: first, system) } == true ? first + "-2" : first
    let temporaryPath = folder + "/" + Self.temporaryName
    try reporting("create the folder", folder) { () throws(SystemError) in
      do throws(SystemError) { try system.makeFolder(Entry(folder)) } catch  where error.code == EEXIST {}
    }
    do {
      file = try system.makeRoom(at: Entry(temporaryPath)) { () throws(SystemError) in
        try OpenFile(Entry(temporaryPath), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, system: system)
      }
    } catch {
      try? system.removeFolder(Entry(folder))
      throw error.downloadError("create", temporaryPath)
    }
    self.folder = folder
    self.temporaryPath = temporaryPath
  }

  deinit {
    guard !isCommitted else { return }
    try? system.unlink(Entry(temporaryPath))
    try? system.removeFolder(Entry(folder))
  }

  /// Writes the whole block.
  ///
  /// - Throws: ``DownloadError`` with `.noSpace`, `.permission` or `.storage`.
  package mutating func write(_ bytes: RawSpan) throws {
    do throws(SystemError) { try file.write(bytes, at: size) } catch {
      throw error.downloadError("write", temporaryPath)
    }
    size += Int64(bytes.byteCount)
  }

  /// Closes the file and gives it its name. With ``Durability/power``, both are on the disk afterwards.
  ///
  /// - Returns: The path of the file.
  /// - Throws: ``DownloadError``, also for errors that the system reports only at flushing or closing.
  package mutating func commit(as name: String, durability: Durability) throws -> String {
    let path = folder + "/" + name
    do throws(SystemError) {
      if durability == .power { try file.flush() }
      try file.close()
      try system.rename(Entry(temporaryPath), to: Entry(path))
      isCommitted = true
      // The name of the file, and the name of its folder.
      try OpenFolder.flush(above: path, durability, system: system)
      try OpenFolder.flush(above: folder, durability, system: system)
    } catch {
      throw error.downloadError("complete", path)
    }
    return path
  }
}

/// Whether a file is directly in a folder, however the two paths are written.
private func isFile(_ path: String, in folder: String, _ system: FileSystem) -> Bool {
  guard let parent = try? system.status(Entry(PathText.split(path).folder), following: true),
    let folder = try? system.status(Entry(folder), following: true)
  else { return false }
  return parent.isSame(as: folder)
}
