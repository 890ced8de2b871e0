#if LIBCURL && os(Linux)
  import CBrotli
  import DownpipeCore

  /// Decodes `br` (RFC 7932).
  final class BrotliContentDecoder: ContentDecoder {
    private let state: OpaquePointer
    private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: DecodableCoding.blockSize, alignment: 16)
    private(set) var isComplete = false

    init() throws(DownloadError) {
      guard let state = BrotliDecoderCreateInstance(nil, nil, nil) else { throw DecodableCoding.outOfMemory }
      self.state = state
    }

    deinit {
      BrotliDecoderDestroyInstance(state)
      output.deallocate()
    }

    func decode(_ block: RawSpan, emit: (RawSpan) throws -> Void) throws {
      try block.withUnsafeBytes { block in
        guard !isComplete else { throw DamagedContent.followed }
        var left = block.count
        var next = block.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var result: BrotliDecoderResult
        repeat {
          var room = output.count
          var target = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
          result = BrotliDecoderDecompressStream(state, &left, &next, &room, &target, nil)
          let count = output.count - room
          if count > 0 { try emit(UnsafeRawBufferPointer(rebasing: output[..<count]).bytes) }
        } while result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT
        guard result != BROTLI_DECODER_RESULT_ERROR else {
          // The codes of failed allocations; the file may be right.
          if (-30 ... -21).contains(BrotliDecoderGetErrorCode(state).rawValue) { throw DecodableCoding.outOfMemory }
          throw DamagedContent.invalid(
            BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state)).map { String(cString: $0) })
        }
        guard left == 0 else { throw DamagedContent.followed }
        isComplete = result == BROTLI_DECODER_RESULT_SUCCESS
      }
    }
  }
#endif
