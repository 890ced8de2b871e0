#if LIBCURL
  import DownpipeCore

  /// Decodes one content coding, block by block, with a constant amount of memory.
  ///
  /// The output is verified only when ``isComplete`` is true after the last block.
  protocol ContentDecoder: AnyObject {
    /// Whether the end of the coded data has been reached.
    var isComplete: Bool { get }

    /// Decodes the next block.
    /// - Throws: ``DamagedContent`` for bytes that are not of the coding, or that follow its end; what `emit` throws.
    func decode(_ block: RawSpan, emit: (RawSpan) throws -> Void) throws
  }

  /// The bytes are not of the coding.
  struct DamagedContent: Error {}

  /// The content codings of HTTP that have a decoder.
  enum DecodableCoding: String {
    case gzip
    case deflate
    #if os(Linux)
      case brotli = "br"
      case zstandard = "zstd"
    #endif

    /// The bytes in a block of output, at most.
    static let blockSize = 256 << 10

    func makeDecoder() throws(DownloadError) -> any ContentDecoder {
      switch self {
      case .gzip: try InflateDecoder(.gzip)
      case .deflate: try InflateDecoder(.deflate)
      #if os(Linux)
        case .brotli: try BrotliContentDecoder()
        case .zstandard: try ZstandardDecoder()
      #endif
      }
    }

    static let outOfMemory = DownloadError(.processing, "there is not enough memory to decode the file")
  }
#endif
