import Downpipe
import Foundation

/// A new file that only its owner can read. It appears under its name when it is complete.
struct PrivateFile: ~Copyable {
  let path: String
  private let replaces: Bool
  private let temporary: String
  private let descriptor: Int32
  let output: OutputFile

  private init(path: String, replaces: Bool, temporary: String, descriptor: Int32) {
    (self.path, self.replaces, self.temporary, self.descriptor) = (path, replaces, temporary, descriptor)
    output = OutputFile(descriptor: descriptor)
  }

  /// - Parameters:
  ///   - text: The path as it was typed.
  ///   - option: The option it was given with, for the message.
  ///   - replaces: Whether a file with this name is replaced.
  static func create(_ text: String, option: String, replaces: Bool) throws(UsageError) -> PrivateFile {
    let path = try Folder.absolutePath(text)
    if let obstacle = Folder.obstacle(at: path) {
      throw UsageError("\(option): “\(text)” is \(obstacle): name a file, or use “-” for standard output")
    }
    guard replaces || !exists(path) else {
      throw UsageError("\(option): “\(text)” exists: choose another name, or replace it with --force")
    }
    let temporary = "\(path).\(getpid()).part"
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw UsageError("\(option): “\(text)” cannot be written: \(String(cString: strerror(errno)))")
    }
    return PrivateFile(path: path, replaces: replaces, temporary: temporary, descriptor: descriptor)
  }

  /// Removes the file unless it was finished.
  deinit {
    close(descriptor)
    unlink(temporary)
  }

  /// Gives the file its name, after its bytes are on the disk.
  /// - Throws: ``DownloadError`` with `.storage`.
  func finish() throws(DownloadError) {
    guard fsync(descriptor) == 0 else { throw failure() }
    if !replaces {
      // Unlike a rename, a link replaces nothing.
      if link(temporary, path) == 0 { return }
      // Not every file system has links.
      guard errno != EEXIST, !Self.exists(path) else {
        throw DownloadError(.storage, "“\(path)” exists by now: choose another name, or replace it with --force")
      }
    }
    guard rename(temporary, path) == 0 else { throw failure() }
  }

  private func failure() -> DownloadError {
    DownloadError(.storage, "“\(path)” cannot be written: \(String(cString: strerror(errno)))")
  }

  private static func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }
}
