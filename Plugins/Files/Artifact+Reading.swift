public import DownpipeCore
import DownpipePOSIX

extension Artifact {
  /// Returns the first bytes of a file on disk or in memory; fewer when the file is shorter.
  ///
  /// Use it to detect a file format:
  /// ```swift
  /// let artifact = try await film.value
  /// let isGzip = try artifact.read(first: 2) == [0x1F, 0x8B]
  /// ```
  /// The call blocks while the disk works.
  /// - Throws: `DownloadError` with `.storage` for a folder, and `.storage` or `.permission` when the file cannot be
  ///   read.
  public func read(first count: Int) throws -> [UInt8] {
    let count = max(0, count)
    let path: String
    switch location {
    case .memory(let bytes): return Array(bytes.prefix(count))
    case .remote(let url): throw DownloadError.elsewhere(url)
    case .path(let known): path = known
    }
    return try reporting("read", path) {
      let file = try OpenFile(reading: path)
      let status = try file.status()
      guard status.kind == .file else {
        throw DownloadError(.storage, "\(path) is not a file: only the bytes of a file can be read")
      }
      return try file.read(Int(min(Int64(count), status.size)), at: 0)
    }
  }
}
