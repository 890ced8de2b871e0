#if Archive
  public import DownpipeCore
  import DownpipeGzip
  import DownpipePOSIX

  /// A step that decompresses a single file: gzip, xz, zstd, bzip2 or lz4, recognised by its contents.
  ///
  /// All members, streams or frames of the file are decompressed in order, and their checksums are verified. A truncated
  /// or damaged file fails, and no part of its contents is published. A compressed file in a compressed file is
  /// decompressed once. For archives use ``Unarchive``, which decompresses them itself.
  ///
  /// ```swift
  /// VerifyChecksum()      // of the bytes as they were downloaded
  /// Decompress()          // disk.img.zst → disk.img
  /// ```
  ///
  /// **Name.** The suffix is removed or replaced: `a.xz` → `a`, `a.txz` → `a.tar`. A name without such a suffix stays the
  /// same.
  ///
  /// **Limits.** The output is limited to `maximumOutput`, which is 64 GiB by default, and to `maximumRatio` times the
  /// bytes that were downloaded, which is 256 by default. The ratio does not apply to the first ``freeOutput`` bytes.
  /// xz and zstd can compress repetitive files further than gzip can. Without a workspace, ``maximumInMemory`` applies,
  /// too. Decoders use at most 1 GiB of memory (xz) or 128 MiB (zstd, as its own program without `--long`).
  ///
  /// **Contract.** The step blocks, and checks for cancellation after each block. It writes a temporary file in the
  /// workspace, renames it when it is complete, and removes it when the step fails or is cancelled. For a storage in
  /// memory it works in memory.
  ///
  /// It throws `DownloadError` with `.damaged` for a file that is not compressed, is damaged or truncated, or is followed
  /// by other bytes than zeros; the engine downloads it again. `.processing` for a compression that is not known or not
  /// in this system's libarchive, and for too little memory; `.tooLarge`; `.noSpace`, `.permission` or `.storage` for
  /// errors of the file system; and `CancellationError`.
  public struct Decompress: PostProcessor {
    /// The output that the limit on the ratio always allows: 1 GiB.
    public static let freeOutput: Int64 = 1 << 30
    /// The maximum output without a workspace: 256 MiB.
    public static let maximumInMemory: Int64 = 256 << 20

    /// The maximum output in bytes; `nil` for no limit.
    public let maximumOutput: Int64?
    /// The maximum ratio of the output to the downloaded bytes; `nil` for no limit.
    public let maximumRatio: Int64?

    /// Creates a step that decompresses files.
    ///
    /// - Parameters:
    ///   - maximumOutput: The maximum output in bytes, 64 GiB by default; `nil` for no limit.
    ///   - maximumRatio: The maximum ratio of the output to the downloaded bytes, 256 by default; `nil` for no limit. It
    ///     does not apply to the first ``freeOutput`` bytes.
    public init(maximumOutput: Int64? = 64 << 30, maximumRatio: Int64? = 256) {
      self.maximumOutput = maximumOutput.map { max(0, $0) }
      self.maximumRatio = maximumRatio.map { max(0, $0) }
    }

    /// The limits.
    public var summary: String {
      [
        maximumOutput.map { "at most \(ByteFormat.binary.format($0))" } ?? "any size",
        maximumRatio.map { "at most \($0):1" } ?? "any ratio",
      ].joined(separator: ", ")
    }

    /// Decompresses the file into the workspace, or into memory if there is none.
    public func process(_ input: File, in context: ProcessingContext) async throws -> File {
      try Task.checkCancellation()
      let packed = try ArtifactBytes(input.artifact)
      let size = context.bytesReceived ?? packed.byteCount
      let name = UnpackedFileName.file(for: input.name)
      guard UnpackedName.isComponent(name) else {
        throw DownloadError(.unsafePath, "“\(name)” is not a file name: give the request a name")
      }
      let source = try decoded(ArtifactBlocks(packed), limit(forInput: size, inMemory: context.workspace == nil))
      guard let workspace = context.workspace else {
        var bytes: [UInt8] = []
        try forEachBlock(of: source) { bytes.append(contentsOf: $0) }
        return File(artifact(input.artifact, at: .memory(bytes), named: name, size: Int64(bytes.count)))
      }
      var output = try WorkspaceFile(in: workspace, folder: "decompress", beside: input.path)
      try forEachBlock(of: source) { try output.write($0.bytes) }
      let byteCount = output.size
      let path = try output.commit(as: name, durability: context.durability)
      return File(artifact(input.artifact, at: .path(path), named: name, size: byteCount))
    }

    /// The decompressed bytes of a source.
    func decoded(_ source: any BlockSource, _ limit: OutputLimit) throws -> DecodedBlocks {
      let head = try source.head()
      if let compression = Compression(of: head) { return try .make(compression, of: source, limit: limit) }
      if let name = OtherFormat.name(of: head) {
        throw DownloadError(
          .processing,
          "the file is \(name), which Decompress does not read: it reads gzip, xz, zstd, bzip2 and lz4")
      }
      throw DownloadError(
        .damaged,
        "the file is not compressed with gzip, xz, zstd, bzip2 or lz4: remove Decompress, or check whether the server "
          + "sent an error page instead")
    }

    private func forEachBlock(of source: DecodedBlocks, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
      while true {
        try Task.checkCancellation()
        let block = try source.next()
        if block.isEmpty { return }
        try body(block)
      }
    }

    /// The lowest limit for a file of this size.
    func limit(forInput byteCount: Int64, inMemory: Bool) -> OutputLimit {
      let limit = OutputLimit.lowest(
        bytes: maximumOutput, ratio: maximumRatio, free: Self.freeOutput, input: byteCount,
        names: ("Decompress(maximumOutput:)", "Decompress(maximumRatio:)"))
      guard inMemory, limit.byteCount > Self.maximumInMemory else { return limit }
      return OutputLimit(
        byteCount: Self.maximumInMemory,
        explanation: "the file unpacks to more than \(Self.maximumInMemory) bytes, the limit for memory: use a storage "
          + "that writes files")
    }

    private func artifact(
      _ input: Artifact, at location: Artifact.Location, named name: String, size: Int64
    ) -> Artifact {
      // The media type of the compressed file does not describe its contents.
      let wrappers = [
        "application/gzip", "application/x-gzip", "application/x-tgz", "application/x-xz", "application/zstd",
        "application/x-bzip2", "application/x-lz4", "application/octet-stream",
      ]
      let type = input.mediaType.flatMap { type in
        let essence = type.prefix { $0 != ";" && $0 != " " }.lowercased()
        return wrappers.contains(essence) ? nil : type
      }
      return Artifact(kind: .file, location: location, name: name, size: .known(size), mediaType: type)
    }
  }
#endif
