import DownpipeCore
import DownpipePOSIX

extension FilePartial {
  static let bufferSize = 1 << 20

  func mark(endingAt offset: Int64, from start: Int64) throws -> BlockMark? {
    try BlockDigest.mark(endingAt: offset, from: start, of: path) { try read(at: $0, count: $1) }
  }

  func matches(_ mark: BlockMark) throws -> Bool {
    try BlockDigest.matches(mark) { try read(at: $0, count: $1) }
  }

  func copy(_ other: String, count: Int64) async throws -> Int64? {
    try await BlockingThreads.run { [self] cancellation in
      let source: OpenFile
      do throws(SystemError) {
        source = try OpenFile(reading: other, followingLink: false, system: system)
      } catch {
        let reason = error.downloadError("open", other)
        // A lack of descriptors passes; a file that is gone, or that must not be read, does not come back.
        guard [.storage, .permission, .unsafePath].contains(reason.code) else { throw reason }
        throw DownloadError(
          .invalidRequest, "\(other) cannot be imported: it \(error.isAbsence ? "does not exist" : "cannot be read")",
          cause: error)
      }
      let status = try reporting("read the status of", other) { () throws(SystemError) in try source.status() }
      guard status.kind == .file else {
        throw DownloadError(.invalidRequest, "\(other) is not a file: only the bytes of a file can be imported")
      }
      let count = max(0, count)
      let isItself = try withFile("read the status of") { file in try file?.status().isSame(as: status) ?? false }
      if isItself {
        let size = min(count, status.size)
        try truncate(to: size)
        return size
      }
      try truncate(to: 0)
      return try reporting("read", other) {
        try source.forEachBlock(of: Self.bufferSize, upTo: count) { block, offset in
          try cancellation.check()
          try write(block, at: offset)
          return true
        }
      }
    }
  }

  func export(to other: String, count: Int64) async throws {
    let file = ExportedFile(other, count: count, durability: folders.durability, system: system)
    try await BlockingThreads.run { [self] cancellation in
      // A duplicate, so that no write waits for the lock while the bytes are copied.
      let source = try withFile("export") { file in try file?.duplicate() }
      try file.make { target in
        guard let source else { return 0 }
        return try source.forEachBlock(of: Self.bufferSize, upTo: count) { block, offset in
          try cancellation.check()
          try target.write(block, at: offset)
          return true
        }
      }
    }
  }
}
