#if LIBCURL
  import CZlib
  import DownpipeCore

  /// Decodes `gzip` (all members, RFC 1952 §2.2) and `deflate`, which is zlib's format (RFC 1950) by the rules (RFC 9110
  /// §8.4.1.2) and its bare content (RFC 1951) from some servers.
  final class InflateDecoder: ContentDecoder {
    enum Format { case gzip, deflate }

    private let format: Format
    private let stream: UnsafeMutablePointer<z_stream>
    private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: DecodableCoding.blockSize, alignment: 16)
    private var isStarted = false
    private(set) var isComplete = false

    init(_ format: Format) throws(DownloadError) {
      self.format = format
      stream = .allocate(capacity: 1)
      stream.initialize(to: z_stream())
    }

    deinit {
      if isStarted { inflateEnd(stream) }
      stream.deallocate()
      output.deallocate()
    }

    private func start(_ block: UnsafeRawBufferPointer) throws {
      // The first two bytes of zlib's format: a window of at most 32 KiB, deflate, and a multiple of 31.
      let isZlib = block.count >= 2 && block[0] & 0x8F == 8 && (Int(block[0]) * 256 + Int(block[1])) % 31 == 0
      let window: Int32 = format == .gzip ? 15 + 16 : isZlib ? 15 : -15
      let size = Int32(MemoryLayout<z_stream>.size)
      guard inflateInit2_(stream, window, ZLIB_VERSION, size) == Z_OK else { throw DecodableCoding.outOfMemory }
      isStarted = true
    }

    func decode(_ block: RawSpan, emit: (RawSpan) throws -> Void) throws {
      try block.withUnsafeBytes { block in
        guard let first = block.baseAddress else { return }
        if !isStarted { try start(block) }
        stream.pointee.next_in = UnsafeMutablePointer(mutating: first.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(block.count)
        repeat {
          if isComplete { try beginMember() }
          try decodeMember(emit)
        } while stream.pointee.avail_in > 0
      }
    }

    /// Begins the next gzip member, of which at least one byte is there.
    private func beginMember() throws {
      guard format == .gzip, stream.pointee.next_in?.pointee == 0x1F, inflateReset(stream) == Z_OK else {
        throw DamagedContent.followed
      }
      isComplete = false
    }

    /// Decodes up to the end of the member or of the input.
    private func decodeMember(_ emit: (RawSpan) throws -> Void) throws {
      repeat {
        stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(output.count)
        let code = inflate(stream, Z_NO_FLUSH)
        guard [Z_OK, Z_STREAM_END, Z_BUF_ERROR].contains(code) else {
          if code == Z_MEM_ERROR { throw DecodableCoding.outOfMemory }
          throw DamagedContent.invalid(stream.pointee.msg.map { String(cString: $0) })
        }
        let count = output.count - Int(stream.pointee.avail_out)
        if count > 0 { try emit(UnsafeRawBufferPointer(rebasing: output[..<count]).bytes) }
        isComplete = code == Z_STREAM_END
      } while !isComplete && stream.pointee.avail_out == 0
    }
  }
#endif
