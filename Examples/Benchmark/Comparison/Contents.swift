import Foundation

/// The files that the servers have, each made when a row first needs it.
actor Contents {
  /// The folder that nginx serves.
  nonisolated let root: String
  private let folder: WorkFolder
  private var digests: [String: String] = [:]

  init(folder: WorkFolder) throws {
    self.folder = folder
    root = try folder.folder("served")
  }

  /// A file of random bytes.
  /// - Returns: Its SHA-256.
  func random(_ name: String, size: Int64) throws -> String {
    if let digest = digests[name] { return digest }
    // The result needs as much.
    try check(space: 2 * size)
    var content = RandomContent(seed: UInt64(size))
    let digest = try content.write(size, to: "\(root)/\(name)")
    digests[name] = digest
    return digest
  }

  /// Many files of random bytes, named by their number.
  func random(_ folderName: String, count: Int, size: Int64) throws {
    guard digests[folderName] == nil else { return }
    try check(space: 2 * size * Int64(count))
    try FileManager.default.createDirectory(atPath: "\(root)/\(folderName)", withIntermediateDirectories: false)
    var content = RandomContent(seed: UInt64(count))
    for number in 0..<count { try content.write(size, to: "\(root)/\(folderName)/\(number).bin") }
    digests[folderName] = ""
  }

  /// A file of gzip beside the original, which has the name without `.gz`.
  func compressed(_ name: String, size: Int64, processes: Processes) async throws {
    guard digests[name] == nil else { return }
    try check(space: 3 * size)
    var content = RandomContent(seed: UInt64(size))
    try content.writeWords(size, to: "\(root)/\(name)")
    let (use, output) = try await processes.run(ProgramCommand("gzip", ["-k", "\(root)/\(name)"]))
    guard use.status == 0 else { throw BenchmarkError("gzip (package gzip) failed: \(output)") }
    digests[name] = ""
  }

  /// A tar, compressed with zstd, of files of words, beside the folder with the originals.
  /// - Returns: The names of the files.
  func archived(_ name: String, size: Int64, processes: Processes) async throws -> [String] {
    let files = (0..<16).map { "\($0).txt" }
    guard digests[name] == nil else { return files }
    // The originals, the results of unpacking, and the archive three times.
    try check(space: 4 * size)
    let folder = "\(root)/\(name)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    var content = RandomContent(seed: UInt64(size) + 1)
    for file in files { try content.writeWords(size / Int64(files.count), to: "\(folder)/\(file)") }
    let (use, output) = try await processes.run(
      ProgramCommand("tar", ["--zstd", "-cf", "\(folder).tar.zst", "-C", folder, "."]))
    guard use.status == 0 else { throw BenchmarkError("tar (packages tar and zstd) failed: \(output)") }
    digests[name] = ""
    return files
  }

  private func check(space: Int64) throws {
    guard folder.freeBytes > space else {
      throw BenchmarkError("\(folder.path) needs \(Shown.bytes(space)) of space: choose another folder with --folder")
    }
  }
}
