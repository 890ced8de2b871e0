#if Archive
  import DownpipePOSIX

  /// Where the bytes of an archive come from: a file, a decoder, or a transfer that is not complete.
  ///
  /// The reader pulls. One thread at a time uses a source.
  protocol BlockSource: AnyObject {
    /// The number of bytes, if the source can be read from any offset; otherwise `nil`.
    var seekableByteCount: Int64? { get }

    /// The first bytes, without taking them; empty for an empty source. Valid until the next call.
    func head() throws -> UnsafeRawBufferPointer

    /// Takes the next block, which is empty at the end. Valid until the next call.
    func next() throws -> UnsafeRawBufferPointer

    /// Continues at an offset. Called only if ``seekableByteCount`` is known.
    func seek(to offset: Int64)
  }

  /// The blocks of a file, or of bytes in memory.
  final class ArtifactBlocks: BlockSource {
    /// The bytes that decide about the format: a header of tar has 512.
    static let headSize = 512

    let bytes: ArtifactBytes
    private let buffer: UnsafeMutableRawBufferPointer
    private var offset: Int64 = 0

    init(_ bytes: ArtifactBytes) {
      self.bytes = bytes
      buffer = .allocate(byteCount: ArtifactBytes.blockSize, alignment: 64)
    }

    deinit { buffer.deallocate() }

    var seekableByteCount: Int64? { bytes.byteCount }

    func head() throws -> UnsafeRawBufferPointer {
      let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Self.headSize])
      return UnsafeRawBufferPointer(rebasing: room[..<(try bytes.read(into: room, at: offset))])
    }

    func next() throws -> UnsafeRawBufferPointer {
      let count = try bytes.read(into: buffer, at: offset)
      offset += Int64(count)
      return UnsafeRawBufferPointer(rebasing: buffer[..<count])
    }

    func seek(to offset: Int64) { self.offset = max(0, offset) }
  }
#endif
