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
  /// **While bytes arrive.** If it is the first step of the pipeline that changes the bytes, a download of 2 MiB or more is
  /// decompressed into the workspace while it arrives. When the last byte has arrived, the step only decodes the last block,
  /// and gives the output its name. Four downloads of the process are unpacked so at once, because each needs a thread and
  /// the memory of its decoder for as long as it takes. Others are unpacked when they are complete, as are those whose
  /// size the server does not announce if they become larger than ``freeOutput``. What was written is removed when the
  /// transfer starts again, is stopped or fails, and when the disk is full.
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
    let places: FollowerPlaces

    /// Creates a step that decompresses files.
    ///
    /// - Parameters:
    ///   - maximumOutput: The maximum output in bytes, 64 GiB by default; `nil` for no limit.
    ///   - maximumRatio: The maximum ratio of the output to the downloaded bytes, 256 by default; `nil` for no limit. It
    ///     does not apply to the first ``freeOutput`` bytes.
    public init(maximumOutput: Int64? = 64 << 30, maximumRatio: Int64? = 256) {
      self.init(maximumOutput: maximumOutput, maximumRatio: maximumRatio, places: PulledTransfer.places)
    }

    init(maximumOutput: Int64? = 64 << 30, maximumRatio: Int64? = 256, places: FollowerPlaces) {
      self.places = places
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

    /// Whether the follower writes to the workspace: always.
    public var followerWrites: Bool { true }

    /// Returns a follower that decompresses the file while it arrives; `nil` without a workspace, and if four downloads are
    /// being unpacked so.
    public func follower(in context: ProcessingContext) -> (any TransferFollower)? {
      guard let workspace = context.workspace, let place = places.take() else { return nil }
      return DecompressFollower(self, in: workspace, announced: context.bytesReceived, place)
    }

    /// Decompresses the file into the workspace, or into memory if there is none.
    public func process(_ input: File, in context: ProcessingContext) async throws -> File {
      try Task.checkCancellation()
      let name = UnpackedFileName.file(for: input.name)
      guard UnpackedName.isComponent(name) else {
        throw DownloadError(.unsafePath, "“\(name)” is not a file name: give the request a name")
      }
      if let follower = context.follower as? DecompressFollower {
        if let (path, size) = try await follower.finish(named: name, durability: context.durability) {
          return File(input.artifact.unpacked(at: .path(path), named: name, size: size, wrappers: Self.wrappers))
        }
        follower.discard()
      }
      let packed = try ArtifactBytes(
        input.artifact, didRead: InputProgress(of: input.artifact, in: context).didRead)
      let size = context.bytesReceived ?? packed.byteCount
      let source = try decoded(ArtifactBlocks(packed), limit(forInput: size, inMemory: context.workspace == nil))
      guard let workspace = context.workspace else {
        var bytes: [UInt8] = []
        try forEachBlock(of: source) { bytes.append(contentsOf: $0) }
        return File(
          input.artifact.unpacked(
            at: .memory(bytes), named: name, size: Int64(bytes.count), wrappers: Self.wrappers))
      }
      var output = try WorkspaceFile(in: workspace, folder: Self.folder, beside: input.path)
      try forEachBlock(of: source) { try output.write($0.bytes) }
      let byteCount = output.size
      let path = try output.commit(as: name, durability: context.durability)
      return File(
        input.artifact.unpacked(at: .path(path), named: name, size: byteCount, wrappers: Self.wrappers))
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

    /// The name of the folder for the output, in the workspace.
    static let folder = "decompress"

    func forEachBlock(of source: DecodedBlocks, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
      while true {
        try Task.checkCancellation()
        let block = try source.next()
        if block.isEmpty { return }
        try body(block)
      }
    }

    /// The lowest limit for a file of this size.
    func limit(forInput byteCount: Int64, inMemory: Bool) -> OutputLimit {
      .lowest(
        bytes: maximumOutput, ratio: maximumRatio, free: Self.freeOutput, input: byteCount,
        memory: inMemory ? Self.maximumInMemory : nil, verb: "unpacks",
        names: ("Decompress(maximumOutput:)", "Decompress(maximumRatio:)"))
    }

    private static let wrappers: Set = [
      "application/gzip", "application/x-gzip", "application/x-tgz", "application/x-xz", "application/zstd",
      "application/x-bzip2", "application/x-lz4", "application/octet-stream",
    ]
  }
#endif
