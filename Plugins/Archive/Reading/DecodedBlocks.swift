#if Archive
  import CArchive
  import DownpipeCore
  import DownpipeGzip

  /// The decompressed bytes of another source, verified to their end.
  ///
  /// The checksums of a compressed file are at its end, so its bytes are right only when ``next()`` has returned an
  /// empty block.
  class DecodedBlocks: BlockSource {
    private let limit: OutputLimit
    /// The bytes so far.
    private var byteCount: Int64 = 0
    private var first: UnsafeRawBufferPointer?

    fileprivate init(limit: OutputLimit) { self.limit = limit }

    /// The decoder for a compression.
    ///
    /// - Throws: `DownloadError` with `.processing` if this libarchive does not have it.
    static func make(
      _ compression: Compression, of source: any BlockSource, limit: OutputLimit
    ) throws -> DecodedBlocks {
      compression == .gzip
        ? try GzipBlocks(source, limit: limit) : try FilteredBlocks(source, compression, limit: limit)
    }

    final var seekableByteCount: Int64? { nil }

    final func seek(to offset: Int64) {}

    final func head() throws -> UnsafeRawBufferPointer {
      if let first { return first }
      let block = try take()
      first = block
      return block
    }

    final func next() throws -> UnsafeRawBufferPointer {
      if let first {
        self.first = nil
        return first
      }
      return try take()
    }

    private func take() throws -> UnsafeRawBufferPointer {
      let block = try decode()
      byteCount += Int64(block.count)
      guard byteCount <= limit.byteCount else { throw DownloadError(.tooLarge, limit.explanation) }
      return block
    }

    /// Decodes the next block, which is empty at the end.
    fileprivate func decode() throws -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }
  }

  /// The contents of a gzip file. libarchive checks neither the CRC nor the length of a member, so libz decodes it.
  private final class GzipBlocks: DecodedBlocks {
    /// Few bytes at once, because one can become 1032.
    private static let sliceSize = 1 << 10

    private let source: any BlockSource
    private var decoder: GzipDecoder
    private var input = UnsafeRawBufferPointer(start: nil, count: 0)
    private var isFinished = false
    private let output: UnsafeMutableRawBufferPointer

    init(_ source: any BlockSource, limit: OutputLimit) throws {
      self.source = source
      decoder = try GzipDecoder(limit: limit, trailingBytes: .refuse)
      output = .allocate(byteCount: Self.sliceSize * 1032 + 2 * GzipDecoder.blockSize, alignment: 64)
      super.init(limit: limit)
    }

    deinit { output.deallocate() }

    override func decode() throws -> UnsafeRawBufferPointer {
      var filled = 0
      func collect(_ block: RawSpan) throws {
        try block.withUnsafeBytes { bytes in
          guard bytes.count <= output.count - filled else {
            throw DownloadError(.damaged, "the gzip file expands more than its format can")
          }
          UnsafeMutableRawBufferPointer(rebasing: output[filled...]).copyMemory(from: bytes)
          filled += bytes.count
        }
      }
      while filled == 0, !isFinished {
        try Task.checkCancellation()
        if input.isEmpty { input = try source.next() }
        if input.isEmpty {
          isFinished = true
          try decoder.finish(emit: collect)
        } else {
          let slice = UnsafeRawBufferPointer(rebasing: input.prefix(Self.sliceSize))
          input = UnsafeRawBufferPointer(rebasing: input.dropFirst(Self.sliceSize))
          try decoder.update(slice.bytes, emit: collect)
        }
      }
      return UnsafeRawBufferPointer(rebasing: output[..<filled])
    }
  }

  /// What a filter of libarchive decodes.
  private final class FilteredBlocks: DecodedBlocks {
    private let handle: ArchiveHandle
    private var isAtEnd = false

    init(_ source: any BlockSource, _ compression: Compression, limit: OutputLimit) throws {
      guard compression.isAvailable, let filter = compression.filter else {
        throw DownloadError(
          .processing,
          "the file is compressed with \(compression.rawValue), which this system's libarchive was built "
            + "without: install a libarchive with it")
      }
      handle = try ArchiveHandle(source, what: "\(compression.rawValue) file", names: .plain) { archive in
        archive_read_support_format_raw(archive)
        archive_read_support_format_empty(archive)
        // Chosen, not guessed: a compressed file in a compressed file is decoded once.
        archive_read_append_filter(archive, filter)
      }
      super.init(limit: limit)
      try handle.refuseSilentFailure()
      isAtEnd = try handle.next() == nil
    }

    override func decode() throws -> UnsafeRawBufferPointer {
      if !isAtEnd, let block = try handle.block() { return block.bytes }
      isAtEnd = true
      try handle.refuseTrailingBytes()
      return UnsafeRawBufferPointer(start: nil, count: 0)
    }
  }
#endif
