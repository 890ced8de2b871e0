#if LIBCURL
  import DownpipeCore
  import DownpipeDigest
  import DownpipeHTTP
  import DownpipePOSIX

  /// The bytes of an artifact, for requests.
  struct ObjectContent: Sendable {
    private enum Place: Sendable {
      case file(OpenFile, path: String)
      case memory([UInt8])
    }

    let byteCount: Int64
    private let place: Place

    /// - Throws: `DownloadError` with `.processing` if it is not a regular file, `.permission` or `.storage`.
    init(_ artifact: Artifact) throws {
      byteCount = try ArtifactBytes(artifact).byteCount
      switch artifact.location {
      case .path(let path):
        place = .file(try reporting("open", path) { () throws(SystemError) in try OpenFile(reading: path) }, path: path)
      case .memory(let bytes): place = .memory(bytes)
      case .remote(let url): throw DownloadError.elsewhere(url)
      }
    }

    /// A part of the bytes as the body of a request.
    func body(_ range: Range<Int64>) -> any RequestBody {
      switch place {
      case .file(let file, let path):
        RangeBody(range: range, source: path) { offset, span in
          try span.withUnsafeMutableBytes { buffer in
            try reporting("read", path) { () throws(SystemError) in try file.read(into: buffer, at: offset) }
          }
        }
      case .memory(let bytes): MemoryBody(bytes: Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
      }
    }
  }

  /// A range of bytes that are read when they are sent.
  struct RangeBody: RequestBody {
    let range: Range<Int64>
    /// Where the bytes are, for errors.
    let source: String
    let read: ProcessingContext.ReadBack

    var byteCount: Int64 { range.upperBound - range.lowerBound }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
      let count = Int(min(Int64(buffer.count), byteCount - offset))
      guard count > 0 else { return 0 }
      var span = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]).mutableBytes
      guard try read(range.lowerBound + offset, &span) == count else {
        throw DownloadError(
          .storage, "\(source) has become shorter while it was uploaded: does another program change it?")
      }
      return count
    }
  }

  extension RequestBody {
    /// Reads all bytes, and returns their digest.
    /// - Parameter checkCancellation: Throws if there is no use in it any more.
    /// - Throws: `DigestError`, and the errors of reading.
    func digest(
      _ function: HashFunction, checkCancellation: () throws -> Void = Task.checkCancellation
    ) throws -> [UInt8] {
      if let memory = self as? MemoryBody { return try function.digest(of: memory.bytes) }
      var digest = try StreamingDigest(function)
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: ArtifactBytes.blockSize, alignment: 64)
      defer { buffer.deallocate() }
      var offset: Int64 = 0
      while offset < byteCount {
        try checkCancellation()
        let count = try read(into: buffer, at: offset)
        digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        offset += Int64(count)
      }
      return digest.finalize()
    }
  }
#endif
