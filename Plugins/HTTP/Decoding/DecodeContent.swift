#if LIBCURL
  import DownpipeCore
  import DownpipePOSIX
  import Foundation

  /// Removes a content coding that the server has applied to a file although none was requested.
  ///
  /// It decodes gzip, deflate (with and without the header of zlib), br and zstd, and checks that the data is complete. (The
  /// decoders in libcurl take data that ends too early.) The output is limited like that of `Gunzip`: to the size that the
  /// request or the source allow, to 64 GiB, and, beyond the first 64 MiB, to 256 times the bytes that were received. All
  /// codings of a file have this limit together.
  struct DecodeContent: PostProcessor {
    static let maximumOutput: Int64 = 64 << 30
    static let freeOutput: Int64 = 64 << 20
    static let maximumRatio: Int64 = 256
    /// Without a workspace the output is in memory.
    static let maximumInMemory: Int64 = 256 << 20

    let coding: DecodableCoding
    let maximumSize: Int64?

    var summary: String { coding.rawValue }

    /// - Returns: `nil` when there is no decoder for the coding.
    init?(_ coding: String, maximumSize: Int64?) {
      guard let coding = DecodableCoding(rawValue: coding) else { return nil }
      self.coding = coding
      self.maximumSize = maximumSize
    }

    func process(_ input: File, in context: ProcessingContext) async throws -> File {
      let bytes = try ArtifactBytes(
        input.artifact, didRead: InputProgress(of: input.artifact, in: context).didRead)
      let limit = limit(forInput: min(bytes.byteCount, context.bytesReceived ?? .max), context)
      guard let workspace = context.workspace else {
        var output: [UInt8] = []
        let size = try decode(bytes, limit: min(limit, Self.maximumInMemory)) { block in
          block.withUnsafeBytes { output.append(contentsOf: $0) }
        }
        return File(artifact(input.artifact, at: .memory(output), size: size))
      }
      var output = try WorkspaceFile(in: workspace, folder: "decoded", beside: input.path)
      let size = try decode(bytes, limit: limit) { block in try output.write(block) }
      let path = try output.commit(as: input.name, durability: context.durability)
      return File(artifact(input.artifact, at: .path(path), size: size))
    }

    private func artifact(_ input: Artifact, at location: Artifact.Location, size: Int64) -> Artifact {
      var artifact = input
      artifact.location = location
      artifact.size = .known(size)
      return artifact
    }

    private func limit(forInput size: Int64, _ context: ProcessingContext) -> Int64 {
      let (product, overflow) = size.multipliedReportingOverflow(by: Self.maximumRatio)
      let byRatio = max(Self.freeOutput, overflow ? .max : product)
      return [maximumSize, context.request.maximumSize, Self.maximumOutput, byRatio].compactMap { $0 }.min() ?? byRatio
    }

    private func decode(
      _ input: borrowing ArtifactBytes, limit: Int64, emit: (RawSpan) throws -> Void
    ) throws -> Int64 {
      try Task.checkCancellation()
      var size: Int64 = 0
      let decoder = try coding.makeDecoder()
      do {
        try input.forEachBlock { block in
          try decoder.decode(block) { decoded in
            size += Int64(decoded.byteCount)
            guard size <= limit else {
              throw DownloadError(
                .tooLarge,
                "the file decodes to more than the \(limit) bytes that are allowed: raise the limit, or keep content "
                  + "codings (keepsContentCoding, --keep-encoded)")
            }
            try emit(decoded)
            try Task.checkCancellation()
          }
          return true
        }
        guard decoder.isComplete else { throw DamagedContent.endsEarly }
      } catch let damage as DamagedContent {
        throw DownloadError(
          .damaged,
          "\(damage.text(coding)); to get the bytes as the server sends them, keep content codings (keepsContentCoding, "
            + "--keep-encoded)")
      }
      return size
    }
  }
#endif
