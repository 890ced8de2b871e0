#if LIBCURL && os(Linux)
  import CZstd
  import DownpipeCore

  /// Decodes `zstd` (RFC 8878): frames one after the other, with a window of at most 8 MiB (RFC 9659).
  final class ZstandardDecoder: ContentDecoder {
    private static let windowLog: Int32 = 23
    private let stream: OpaquePointer
    private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: DecodableCoding.blockSize, alignment: 16)
    private(set) var isComplete = false

    init() throws(DownloadError) {
      guard let stream = ZSTD_createDStream() else { throw DecodableCoding.outOfMemory }
      self.stream = stream
      ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Self.windowLog)
    }

    deinit {
      ZSTD_freeDStream(stream)
      output.deallocate()
    }

    func decode(_ block: RawSpan, emit: (RawSpan) throws -> Void) throws {
      try block.withUnsafeBytes { block in
        var input = ZSTD_inBuffer(src: block.baseAddress, size: block.count, pos: 0)
        var isFull = false
        while input.pos < input.size || isFull {
          var room = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
          let hint = ZSTD_decompressStream(stream, &room, &input)
          guard ZSTD_isError(hint) == 0 else {
            switch ZSTD_getErrorCode(hint) {
            case ZSTD_error_memory_allocation: throw DecodableCoding.outOfMemory
            case ZSTD_error_frameParameter_windowTooLarge:
              throw DownloadError(
                .processing,
                "the zstd coding of the response needs more than 8 MiB of memory, which a server must not ask for "
                  + "(RFC 9659): ask the operator of the server, or keep the file encoded")
            default: break
            }
            // After a complete frame comes another one, or nothing.
            throw isComplete ? DamagedContent.followed : .invalid(String(cString: ZSTD_getErrorName(hint)))
          }
          if room.pos > 0 { try emit(UnsafeRawBufferPointer(rebasing: output[..<room.pos]).bytes) }
          isComplete = hint == 0
          isFull = room.pos == room.size && hint != 0
        }
      }
    }
  }
#endif
