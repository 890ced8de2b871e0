import Downpipe
import Foundation

/// A custom step that changes the form of its artifact: joins the numbered parts in a folder, `name.001` and so on, to one
/// file.
///
/// The parts must be numbered from 001 without a gap, and the folder must contain nothing else: a missing part is an
/// error, not a shorter file. That the last part is there, only the file's digest can tell.
struct JoinParts: PostProcessor {
  func process(_ folder: Directory, in context: ProcessingContext) async throws -> File {
    guard let path = folder.path, let workspace = context.workspace else {
      throw DownloadError(.processing, "JoinParts needs a storage with files, such as FileStore")
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    guard let first = names.first(where: { $0.hasSuffix(PartNumber.suffix(1)) }), first != PartNumber.suffix(1) else {
      throw DownloadError(.processing, "the folder has no part .001")
    }
    let name = String(first.dropLast(PartNumber.suffix(1).count))
    let parts: [String] = (1...Int64(names.count)).map { name + PartNumber.suffix($0) }
    if let missing = Set(parts).subtracting(names).min() {
      throw DownloadError(.processing, "the folder has \(names.count) files, but no part \(missing)")
    }
    let output = "\(workspace)/joined"
    do {
      try FileHandle.create(output) { file in
        for part in parts {
          // A link or a folder could be anything.
          let attributes = try FileManager.default.attributesOfItem(atPath: "\(path)/\(part)")
          guard attributes[.type] as? FileAttributeType == .typeRegular else {
            throw DownloadError(.processing, "\(part) is not a file")
          }
          let input = try FileHandle(forReadingFrom: URL(filePath: "\(path)/\(part)"))
          defer { try? input.close() }
          try file.copy(from: input)
        }
      }
    } catch {
      try? FileManager.default.removeItem(atPath: output)
      throw error
    }
    return File(path: output, name: name)
  }
}
