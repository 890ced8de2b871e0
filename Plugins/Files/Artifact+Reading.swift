public import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension Artifact {
  /// The first bytes of a file, on disk or in memory, fewer where it is shorter: to tell what it is, say.
  ///
  /// ```swift
  /// let artifact = try await film.value
  /// let isGzip = try artifact.read(first: 2) == [0x1F, 0x8B]
  /// ```
  /// It may wait for the disk.
  /// - Throws: `DownloadError` with `.storage` or `.permission` for a folder and for what cannot be read.
  public func read(first count: Int) throws -> [UInt8] {
    let count = max(0, count)
    let path: String
    switch location {
    case .memory(let bytes): return Array(bytes.prefix(count))
    case .path(let known): path = known
    }
    let system = FileSystem.system
    return try reporting("read", path) {
      // A pipe without a writer would hold us here for ever.
      let file = try system.open(Entry(path), O_RDONLY | O_NONBLOCK)
      defer { try? system.close(file) }
      let status = try system.status(file)
      guard status.kind == .file else {
        throw DownloadError(.storage, "\(path) is no file: only the bytes of a file can be read")
      }
      let length = Int(min(Int64(count), status.size))
      var failure: SystemError?
      let bytes = [UInt8](unsafeUninitializedCapacity: length) { buffer, filled in
        do throws(SystemError) {
          filled = try system.read(file, into: UnsafeMutableRawBufferPointer(buffer), at: 0)
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      return bytes
    }
  }
}
