public import DownpipeCore
import DownpipePOSIX

/// A step that decompresses a gzip file (RFC 1952).
///
/// All members of the file are decompressed in order, and libz checks the header, the CRC-32 and the length of each. A
/// truncated or damaged file fails, and no part of its contents is published. (A file that was truncated exactly
/// between two members looks complete. Check its length or its digest before this step.)
///
/// ```swift
/// VerifyChecksum()      // of the bytes as they were downloaded
/// Gunzip()              // film.mkv.gz → film.mkv
/// ```
///
/// **Name.** The suffix is removed or replaced: `a.gz` → `a`, `a.tgz` → `a.tar`, `a.svgz` → `a.svg`. A name without
/// such a suffix stays the same. The name in the gzip header is used only with ``Naming/header``.
///
/// **Limits.** The output is limited, since 1 MiB can decompress to 1 GiB: to `maximumOutput`, which is 64 GiB by
/// default, and to `maximumRatio` times the size of the file, which is 256 by default. The ratio does not apply to the
/// first ``freeOutput`` bytes. Typical ratios are 3 to 20 for text and up to 200 for repetitive logs; the maximum of
/// the format is
/// 1032. Images of mostly empty disks need a higher ratio. Without a workspace, ``maximumInMemory`` applies, too.
///
/// **While bytes arrive.** If it is the first step of the pipeline that changes the bytes, a download of 2 MiB or more is
/// decompressed into the workspace while it arrives, for 64 downloads at once. When the last byte has arrived, the step
/// only checks the end of the file, and gives the output its name. Steps before it, such as `VerifyChecksum`, may still
/// refuse the file; nothing is published before. What was written is removed when the transfer starts again, is stopped,
/// or fails, and when the disk is full. The limits hold: if the server does not announce the size, the ratio is that to the
/// bytes so far, and a file that exceeds it is decompressed after the transfer. With a storage in memory, and after a
/// restart of the process with a complete file, the step reads the file.
///
/// **Contract.** The step blocks, and checks for cancellation after each 256 KiB. It uses about 600 KiB of memory for a
/// file of any size. It writes a temporary file in the workspace, renames it when it is complete, and removes it when
/// the step fails or is cancelled. For a storage in memory it works in memory.
///
/// It throws `DownloadError` with `.damaged` for a file that is not a gzip file, is damaged or truncated, which the engine
/// downloads again; `.processing` for a folder and for too little memory; `.tooLarge`; `.noSpace`, `.permission` or `.storage` for errors of the file system; and `CancellationError`.
public struct Gunzip: PostProcessor {
  /// How bytes after the last member are treated. Zeros up to the end, the padding of tapes and block devices, are
  /// always ignored.
  public enum TrailingBytes: String, Sendable, Hashable {
    /// The file counts as damaged. Damage to the first bytes of the second member looks the same, and ignoring it would
    /// drop the rest of the file without an error.
    case refuse
    /// They are ignored, as GNU gzip does with a warning. Bytes that start like a member must still be one.
    case ignore
  }

  /// Where the name of the decompressed file comes from.
  public enum Naming: String, Sendable, Hashable {
    /// From the name of the compressed file, without its suffix.
    case suffix
    /// From the header of the first member, if it contains a safe name and the request has no file name; otherwise as
    /// ``suffix``. The author of the file chooses this name, which can end in `.exe`, for example.
    case header
  }

  /// How a file that is not compressed is treated.
  public enum OtherFiles: String, Sendable, Hashable {
    /// The step fails.
    case refuse
    /// The file stays as it is, unless its name has the suffix of a gzip file.
    case keep
  }

  /// The output that the limit on the ratio always allows: 1 GiB.
  public static let freeOutput: Int64 = 1 << 30
  /// The maximum output without a workspace: 256 MiB.
  public static let maximumInMemory: Int64 = 256 << 20

  /// The maximum output in bytes; `nil` for no limit.
  public let maximumOutput: Int64?
  /// The maximum ratio of the output to the size of the file; `nil` for no limit.
  public let maximumRatio: Int64?
  /// How bytes after the last member are treated.
  public let trailingBytes: TrailingBytes
  /// Where the name of the decompressed file comes from.
  public let naming: Naming
  /// How a file that is not compressed is treated.
  public let otherFiles: OtherFiles

  /// Creates a step that decompresses gzip files.
  ///
  /// - Parameters:
  ///   - maximumOutput: The maximum output in bytes, 64 GiB by default; `nil` for no limit.
  ///   - maximumRatio: The maximum ratio of the output to the size of the file, 256 by default; `nil` for no limit. It
  ///     does not apply to the first ``freeOutput`` bytes.
  ///   - trailingBytes: How bytes after the last member are treated; they are an error by default.
  ///   - naming: Where the name of the decompressed file comes from.
  ///   - otherFiles: How a file is treated that has neither the first bytes of a gzip file (RFC 1952 §2.3.1) nor the
  ///     suffix of one.
  public init(
    maximumOutput: Int64? = 64 << 30, maximumRatio: Int64? = 256, trailingBytes: TrailingBytes = .refuse,
    naming: Naming = .suffix, otherFiles: OtherFiles = .refuse
  ) {
    self.maximumOutput = maximumOutput.map { max(0, $0) }
    self.maximumRatio = maximumRatio.map { max(0, $0) }
    self.trailingBytes = trailingBytes
    self.naming = naming
    self.otherFiles = otherFiles
  }

  /// The limits, and the settings that differ from the defaults.
  public var summary: String {
    var parts = [maximumOutput.map { "at most \(ByteFormat.binary.format($0))" } ?? "any size"]
    parts.append(maximumRatio.map { "at most \($0):1" } ?? "any ratio")
    if trailingBytes == .ignore { parts.append("trailing bytes ignored") }
    if naming == .header { parts.append("named by the header") }
    if otherFiles == .keep { parts.append("other files stay") }
    return parts.joined(separator: ", ")
  }

  /// Whether the follower writes to the workspace: always.
  public var followerWrites: Bool { true }

  /// Returns a follower that decompresses the file while it arrives; `nil` without a workspace, and if 64 downloads are
  /// being decompressed so.
  public func follower(in context: ProcessingContext) -> (any TransferFollower)? {
    guard let workspace = context.workspace, let place = GunzipFollower.places.take() else { return nil }
    // An error is reported by the step.
    return try? GunzipFollower(self, in: workspace, place)
  }

  /// Decompresses the file into the workspace, or into memory if there is none.
  public func process(_ input: File, in context: ProcessingContext) async throws -> File {
    if let follower = context.follower as? GunzipFollower {
      try Task.checkCancellation()
      let output = try follower.finish(durability: context.durability) {
        try self.name(for: input.artifact, $0, context)
      }
      if let output {
        return File(
          input.artifact.unpacked(
            at: .path(output.path), named: output.name, size: output.byteCount, wrappers: Self.wrappers))
      }
      follower.discard()
    }
    if otherFiles == .keep, try !isPacked(input) { return input }
    let packed = try ArtifactBytes(
      input.artifact, didRead: InputProgress(of: input.artifact, in: context).didRead)
    guard let workspace = context.workspace else {
      var bytes: [UInt8] = []
      let unpacked = try unpack(packed, limit: limit(forInput: packed.byteCount, inMemory: true)) { block in
        block.withUnsafeBytes { bytes.append(contentsOf: $0) }
      }
      let name = try name(for: input.artifact, unpacked, context)
      return File(
        input.artifact.unpacked(
          at: .memory(bytes), named: name, size: unpacked.byteCount, wrappers: Self.wrappers))
    }
    var output = try WorkspaceFile(in: workspace, folder: Self.folder, beside: input.path)
    let unpacked = try unpack(packed, limit: limit(forInput: packed.byteCount, inMemory: false)) { block in
      try output.write(block)
    }
    let name = try name(for: input.artifact, unpacked, context)
    let path = try output.commit(as: name, durability: context.durability)
    return File(
      input.artifact.unpacked(at: .path(path), named: name, size: unpacked.byteCount, wrappers: Self.wrappers))
  }

  /// The name of the folder for the output, in the workspace.
  static let folder = "gunzip"

  /// Whether a file is compressed, by its name or by its first bytes.
  private func isPacked(_ file: File) throws -> Bool {
    if UnpackedName.stripping(file.name) != file.name { return true }
    var isPacked = false
    try ArtifactBytes(file.artifact).forEachBlock { block in
      block.withUnsafeBytes { isPacked = $0.starts(with: [0x1F, 0x8B]) }
      return false
    }
    return isPacked
  }

  struct Unpacked {
    var byteCount: Int64
    var headerName: [UInt8]?
  }

  /// Decompresses all members, and checks for cancellation after each block.
  func unpack(
    _ input: borrowing ArtifactBytes, limit: OutputLimit, emit: (RawSpan) throws -> Void
  ) throws -> Unpacked {
    var decoder = try GzipDecoder(limit: limit, trailingBytes: trailingBytes)
    try Task.checkCancellation()
    func checked(_ block: RawSpan) throws {
      try emit(block)
      try Task.checkCancellation()
    }
    try input.forEachBlock { block in
      try decoder.update(block, emit: checked)
      try Task.checkCancellation()
      return decoder.wantsMore
    }
    try decoder.finish(emit: checked)
    return Unpacked(byteCount: decoder.byteCount, headerName: decoder.headerName)
  }

  /// The lowest limit for a file of this size.
  func limit(forInput byteCount: Int64, inMemory: Bool) -> OutputLimit {
    .lowest(
      bytes: maximumOutput, ratio: maximumRatio, free: Self.freeOutput, input: byteCount,
      memory: inMemory ? Self.maximumInMemory : nil, verb: "decompresses",
      names: ("Gunzip(maximumOutput:)", "Gunzip(maximumRatio:)"))
  }

  /// The most output while the file arrives.
  func mostOutput(ofBytes byteCount: Int64) -> Int64 {
    min(maximumOutput ?? .max, OutputLimit.most(ratio: maximumRatio, free: Self.freeOutput, input: byteCount))
  }

  private static let wrappers: Set = [
    "application/gzip", "application/x-gzip", "application/x-tgz", "application/octet-stream",
  ]

  private func name(
    for input: Artifact, _ unpacked: Unpacked, _ context: ProcessingContext
  ) throws(DownloadError) -> String {
    if naming == .header, context.request.destination.finalName == nil,
      let name = unpacked.headerName.flatMap(UnpackedName.fromHeader)
    {
      return name
    }
    let name = UnpackedName.stripping(input.name)
    guard UnpackedName.isComponent(name) else {
      throw DownloadError(.unsafePath, "“\(name)” is not a file name: give the request a name")
    }
    return name
  }
}
