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

  /// What is wrong with the bytes of a coding.
  enum DamagedContent: Error {
    /// They are not of the coding, with the reason of the decoder if it has one.
    case invalid(String?)
    /// They end before the coded data does.
    case endsEarly
    /// The coded data is complete, and other bytes follow it.
    case followed

    func text(_ coding: DecodableCoding) -> String {
      switch self {
      case .invalid(let reason): "the body is not correct \(coding.rawValue) data\(reason.map { " (\($0))" } ?? "")"
      case .endsEarly: "the body ends before its \(coding.rawValue) data is complete"
      case .followed: "other bytes follow the end of the \(coding.rawValue) data"
      }
    }
  }

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
