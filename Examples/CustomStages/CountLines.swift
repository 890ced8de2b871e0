import Downpipe
import Foundation

/// A custom step: replaces a text by a file with its number of lines.
struct CountLines: PostProcessor {
  func process(_ file: File, in context: ProcessingContext) async throws -> File {
    guard let path = file.path, let workspace = context.workspace else {
      throw DownloadError(.processing, "CountLines needs a storage with files, such as FileStore")
    }
    let handle = try FileHandle(forReadingFrom: URL(filePath: path))
    defer { try? handle.close() }
    var lines = 0
    while let chunk = try handle.read(upToCount: 1 << 16), !chunk.isEmpty {
      try Task.checkCancellation()
      lines += chunk.count { $0 == UInt8(ascii: "\n") }
    }
    let output = "\(workspace)/lines"
    try Data("\(lines)\n".utf8).write(to: URL(filePath: output))
    return File(path: output, name: file.name + ".lines")
  }
}
