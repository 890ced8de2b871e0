package import DownpipeCore

/// The bytes of an artifact, read from the start in blocks: from a file or from memory.
package struct ArtifactBytes {
  /// The number of bytes in a block.
  package static let blockSize = 256 << 10

  /// The number of bytes when the artifact was opened.
  package let byteCount: Int64
  private let content: Content

  private enum Content {
    case file(OpenFile, path: String)
    case memory([UInt8])
  }

  /// Opens an artifact.
  ///
  /// - Throws: ``DownloadError`` with `.processing` if it is not a regular file, `.permission` or `.storage`.
  package init(_ artifact: Artifact) throws {
    switch artifact.location {
    case .memory(let bytes):
      content = .memory(bytes)
      byteCount = Int64(bytes.count)
    case .path(let path):
      let (file, status) = try reporting("open", path) { () throws(SystemError) in
        let file = try OpenFile(reading: path)
        return (file, try file.status())
      }
      // A FIFO or a device could block, and has no size for a limit on the compression ratio.
      guard status.kind == .file else {
        throw DownloadError(.processing, "\(path) is not a regular file")
      }
      content = .file(file, path: path)
      byteCount = status.size
    }
  }

  /// Reads from an offset until the buffer is full or the artifact ends, and returns the number of bytes.
  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
    switch content {
    case .file(let file, let path):
      return try reporting("read", path) { () throws(SystemError) in try file.read(into: buffer, at: offset) }
    case .memory(let bytes):
      guard offset >= 0, offset < Int64(bytes.count) else { return 0 }
      let start = Int(offset)
      let count = min(buffer.count, bytes.count - start)
      bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + count])) }
      return count
    }
  }

  /// Calls `body` with each block until the end, or until it returns false.
  package func forEachBlock(_ body: (RawSpan) throws -> Bool) throws {
    switch content {
    case .file(let file, let path):
      try reporting("read", path) { try file.forEachBlock(of: Self.blockSize) { block, _ in try body(block) } }
    case .memory(let bytes):
      var offset = 0
      while offset < bytes.count {
        let end = min(offset + Self.blockSize, bytes.count)
        guard try body(bytes.span.bytes.extracting(offset..<end)) else { return }
        offset = end
      }
    }
  }
}
