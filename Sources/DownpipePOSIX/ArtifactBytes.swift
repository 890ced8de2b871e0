package import DownpipeCore

/// The bytes of an artifact, read from the start in blocks: from a file or from memory.
package struct ArtifactBytes {
  /// The number of bytes in a block.
  package static let blockSize = 256 << 10

  /// The number of bytes when the artifact was opened.
  package let byteCount: Int64
  private let content: Content
  /// Gets the offset after each read.
  private let didRead: (Int64) -> Void

  private enum Content {
    case file(OpenFile, path: String)
    case memory([UInt8])
  }

  /// Opens an artifact.
  ///
  /// - Parameter didRead: Gets the number of bytes of each read.
  /// - Throws: ``DownloadError`` with `.processing` if it is not a regular file, `.permission` or `.storage`.
  package init(_ artifact: Artifact, didRead: @escaping (Int64) -> Void = { _ in }) throws {
    self.didRead = didRead
    switch artifact.location {
    case .memory(let bytes):
      content = .memory(bytes)
      byteCount = Int64(bytes.count)
    case .remote(let url): throw DownloadError.elsewhere(url)
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
    let count = try bytes(into: buffer, at: offset)
    didRead(Int64(count))
    return count
  }

  private func bytes(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
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
      try reporting("read", path) {
        try file.forEachBlock(of: Self.blockSize) { block, offset in
          didRead(Int64(block.byteCount))
          return try body(block)
        }
      }
    case .memory(let bytes):
      var offset = 0
      while offset < bytes.count {
        let end = min(offset + Self.blockSize, bytes.count)
        didRead(Int64(end - offset))
        guard try body(bytes.span.bytes.extracting(offset..<end)) else { return }
        offset = end
      }
    }
  }
}

/// Reports how far a step has read its input, and what it has made of it.
///
/// Belongs to one thread at a time.
package final class InputProgress {
  private let context: ProcessingContext
  private var progress: StepProgress

  package init(of input: Artifact, in context: ProcessingContext) {
    self.context = context
    progress = StepProgress(completed: 0, total: input.size)
  }

  /// Notes that a number of bytes were read. Archives are read in any order, and parts of them twice.
  package func didRead(_ count: Int64) {
    let (sum, isTooMuch) = progress.completed.addingReportingOverflow(count)
    progress.completed = isTooMuch ? .max : sum
    if case .known(let total) = progress.total { progress.completed = min(progress.completed, total) }
    context.report(progress)
  }

  /// Notes one more thing that was made.
  package func didMakeItem() {
    progress.items = (progress.items ?? 0) + 1
    context.report(progress)
  }
}
