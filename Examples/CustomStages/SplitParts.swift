import Downpipe
import Foundation

/// A custom step that changes the form of its artifact: splits a file into numbered parts, `name.001` and so on, in a
/// folder that has the name of the file.
///
/// Medium-sized parts suit file systems with a limit on sizes, such as FAT. A file of more than 999 parts is refused.
struct SplitParts: PostProcessor {
  /// The number of bytes of a part; the last one is shorter.
  let bytes: Int64

  static let maximumParts: Int64 = 999

  var summary: String { "parts of \(bytes) bytes" }

  func process(_ file: File, in context: ProcessingContext) async throws -> Directory {
    guard let path = file.path, let workspace = context.workspace else {
      throw DownloadError(.processing, "SplitParts needs a storage with files, such as FileStore")
    }
    guard bytes > 0 else { throw DownloadError(.invalidPipeline, "SplitParts needs parts of at least one byte") }
    let input = try FileHandle(forReadingFrom: URL(filePath: path))
    defer { try? input.close() }
    let size = Int64(try input.seekToEnd())
    try input.seek(toOffset: 0)
    guard size <= Self.maximumParts * bytes else {
      throw DownloadError(.processing, "\(size) bytes are more than 999 parts of \(bytes) bytes: make larger parts")
    }
    // What a run left that ended with its process is replaced.
    let folder = "\(workspace)/parts"
    try? FileManager.default.removeItem(atPath: folder)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    do {
      // An empty file has one empty part.
      for number in 1...max(1, (size + bytes - 1) / bytes) {
        let name = file.name + PartNumber.suffix(number)
        try FileHandle.create("\(folder)/\(name)") { try $0.copy(from: input, upTo: bytes) }
      }
    } catch {
      try? FileManager.default.removeItem(atPath: folder)
      throw error
    }
    return Directory(path: folder, name: file.name)
  }
}

/// The number of a part at the end of its name.
enum PartNumber {
  /// The suffix with its dot and at least three digits: `.001`.
  static func suffix(_ number: Int64) -> String {
    let digits = String(number)
    return "." + String(repeating: "0", count: max(0, 3 - digits.count)) + digits
  }
}

extension FileHandle {
  /// Creates a file, fills it and closes it; an existing one is replaced.
  static func create(_ path: String, _ fill: (FileHandle) throws -> Void) throws {
    try Data().write(to: URL(filePath: path))
    let file = try FileHandle(forWritingTo: URL(filePath: path))
    do {
      try fill(file)
    } catch {
      try? file.close()
      throw error
    }
    // Closing can report bytes that were lost.
    try file.close()
  }

  /// Copies bytes in blocks until there are no more, and checks for cancellation after each block.
  func copy(from input: FileHandle, upTo count: Int64 = .max) throws {
    var rest = count
    while rest > 0, let block = try input.read(upToCount: Int(min(rest, 1 << 16))), !block.isEmpty {
      try Task.checkCancellation()
      try write(contentsOf: block)
      rest -= Int64(block.count)
    }
    try Task.checkCancellation()
  }
}
