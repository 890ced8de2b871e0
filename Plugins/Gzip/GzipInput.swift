#if Zlib
  import DownpipeCore

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// The packed bytes of an artifact, read from the front in blocks: from a file or from memory.
  struct GzipInput: ~Copyable {
    /// Reads are this long.
    static let blockSize = 256 << 10

    /// All the bytes there were when it was opened.
    let byteCount: Int64
    /// −1 for bytes in memory.
    private let descriptor: Int32
    private let memory: [UInt8]
    private let path: String

    /// Opens an artifact.
    /// - Throws: ``DownloadError`` with `.processing` for what is no file, `.permission` or `.storage`.
    init(_ artifact: Artifact) throws(DownloadError) {
      switch artifact.location {
      case .memory(let bytes):
        descriptor = -1
        memory = bytes
        path = ""
        byteCount = Int64(bytes.count)
      case .path(let path):
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .file("open", path, errno) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
          let code = errno
          _ = close(descriptor)
          throw .file("examine", path, code)
        }
        // A pipe or a device could block for ever and has no size to judge a bomb by.
        guard status.st_mode & S_IFMT == S_IFREG else {
          _ = close(descriptor)
          throw DownloadError(.processing, "“\(path)” is no regular file: Gunzip unpacks one file")
        }
        self.descriptor = descriptor
        self.path = path
        memory = []
        byteCount = Int64(status.st_size)
      }
    }

    deinit {
      // Nothing was written, so closing has nothing to report.
      if descriptor >= 0 { _ = close(descriptor) }
    }

    /// Calls `body` with each block until the end, or until it returns false.
    func forEachBlock(_ body: (RawSpan) throws -> Bool) throws {
      guard descriptor >= 0 else {
        var offset = 0
        while offset < memory.count {
          let end = min(offset + Self.blockSize, memory.count)
          guard try body(memory.span.bytes.extracting(offset..<end)) else { return }
          offset = end
        }
        return
      }
      let block = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockSize, alignment: 64)
      defer { block.deallocate() }
      while true {
        let count = read(descriptor, block.baseAddress, block.count)
        if count < 0 {
          if errno == EINTR { continue }
          throw DownloadError.file("read", path, errno)
        }
        guard count > 0, try body(UnsafeRawBufferPointer(rebasing: block[..<count]).bytes) else { return }
      }
    }
  }

  extension DownloadError {
    /// A failed system call on a file.
    static func file(_ action: String, _ path: String, _ code: Int32) -> DownloadError {
      let reason = String(cString: strerror(code))
      return switch code {
      case ENOSPC, EDQUOT:
        DownloadError(.noSpace, "cannot \(action) “\(path)”: \(reason). Make room and try again")
      case EACCES, EPERM, EROFS:
        DownloadError(.permission, "cannot \(action) “\(path)”: \(reason). Check who may use the folder")
      case EMFILE, ENFILE:
        DownloadError(.tooManyOpenFiles, "cannot \(action) “\(path)”: \(reason). Run fewer downloads at once")
      default:
        DownloadError(.storage, "cannot \(action) “\(path)”: \(reason)")
      }
    }
  }
#endif
