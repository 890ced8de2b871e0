import Downpipe
import Foundation

/// A custom step that makes a second file: the number of lines of a text, and its first line, in a companion beside it.
struct WriteSummary: PostProcessor {
  func process(_ file: File, in context: ProcessingContext) async throws -> File {
    guard let path = file.path, let workspace = context.workspace else {
      throw DownloadError(.processing, "WriteSummary needs a storage with files, such as FileStore")
    }
    let text = try Data(contentsOf: URL(filePath: path), options: .alwaysMapped)
    let lines = text.count { $0 == UInt8(ascii: "\n") }
    let first = text.prefix(200).prefix { $0 != UInt8(ascii: "\n") }
    let output = "\(workspace)/summary"
    try (Data("\(lines) lines\n".utf8) + first + Data("\n".utf8)).write(to: URL(filePath: output))
    return file.withCompanion(at: output, suffix: ".summary.txt")
  }
}
