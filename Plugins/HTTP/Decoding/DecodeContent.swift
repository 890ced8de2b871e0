#if LIBCURL
  import CCurl
  import DownpipeCore
  import DownpipePOSIX
  import Foundation

  /// Removes a content coding that the server has applied to a file although none was requested.
  ///
  /// libcurl decodes what it decodes for its own users: gzip, deflate (with and without the header of zlib), br and zstd,
  /// as far as it was built for them. The output is limited like that of `Gunzip`: to the size that the request or the
  /// source allow, to 64 GiB, and, beyond the first GiB, to 256 times the size of the input.
  struct DecodeContent: PostProcessor {
    static let maximumOutput: Int64 = 64 << 30
    static let freeOutput: Int64 = 1 << 30
    static let maximumRatio: Int64 = 256
    /// Without a workspace the output is in memory.
    static let maximumInMemory: Int64 = 256 << 20

    let coding: String
    let maximumSize: Int64?

    var summary: String { coding }

    /// - Returns: `nil` when libcurl does not decode the coding.
    init?(_ coding: String, maximumSize: Int64?) {
      guard CurlLibrary.codings.contains(coding) else { return nil }
      self.coding = coding
      self.maximumSize = maximumSize
    }

    func process(_ input: File, in context: ProcessingContext) async throws -> File {
      let bytes = try ArtifactBytes(input.artifact)
      let limit = limit(forInput: bytes.byteCount, context)
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
      _ input: borrowing ArtifactBytes, limit: Int64, emit: @escaping (RawSpan) throws -> Void
    ) throws -> Int64 {
      try Task.checkCancellation()
      var size: Int64 = 0
      // The closures are called within this function only.
      return try withoutActuallyEscaping(emit) { emit in
        let decoder = try CurlDecoder(coding) { block in
          size += Int64(block.byteCount)
          guard size <= limit else {
            throw DownloadError(
              .tooLarge,
              "the file decodes to more than the \(limit) bytes that are allowed: raise the limit, or keep the "
                + "content coding")
          }
          try emit(block)
        }
        try input.forEachBlock { block in
          try decoder.update(block)
          try Task.checkCancellation()
          return true
        }
        try decoder.finish()
        return size
      }
    }
  }

  extension CurlLibrary {
    /// The content codings that this libcurl decodes.
    static let codings: Set<String> = {
      guard version > 0, let info = downpipe_version_info()?.pointee else { return [] }
      var codings: Set<String> = []
      if info.features & CURL_VERSION_LIBZ != 0 { codings.formUnion(["gzip", "deflate"]) }
      if info.features & (1 << 23) != 0 { codings.insert("br") }
      if info.features & (1 << 26) != 0 { codings.insert("zstd") }
      return codings
    }()
  }
#endif
