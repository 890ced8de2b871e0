public import DownpipeCore

/// Unpacks a gzip file (RFC 1952).
///
/// All members are unpacked, one behind the other, and each one's header, CRC-32 and length are checked by
/// libz: a file that is cut or damaged gives an error and never a part of its bytes. (A file that was cut
/// exactly between two members cannot be told from a whole one; check its length or digest before.)
///
/// ```swift
/// VerifyChecksum()      // of the bytes as they were downloaded
/// Gunzip()              // film.mkv.gz → film.mkv
/// ```
///
/// **Name.** The suffix goes: `a.gz` → `a`, `a.tgz` → `a.tar`, `a.svgz` → `a.svg`. A name without such a
/// suffix stays as it is. The name in the header is not used unless asked for with ``Naming/header``.
///
/// **Limits.** The output is bounded, since 1 MiB may unpack to 1 GiB: by `maximumOutput`, 64 GiB unless
/// set; and by `maximumRatio`, 256 times the size of the file unless set, where ``freeOutput`` bytes are
/// always granted. Text packs 3 to 20 times, the most repetitive logs up to 200 times; deflate ends at 1032.
/// Disk images that are mostly empty need a higher ratio. Without a workspace, ``maximumInMemory`` holds too.
///
/// **Contract.** It blocks, in steps of 256 KiB, and uses about 600 KiB of memory whatever the size. It
/// writes a temporary file in the workspace, renames it when it is whole, and removes it when it fails or
/// its task is cancelled. With storages that keep artifacts in memory it works in memory.
///
/// It throws ``DownloadError``: `.processing` for what is no gzip file, is damaged or is cut; `.tooLarge`;
/// `.noSpace`, `.permission` and `.storage` for what happens to the files; and `CancellationError`.
public struct Gunzip: PostProcessor {
  /// What becomes of bytes behind the last member that are no member. Zeros to the end, the padding of tapes
  /// and block devices, are always ignored.
  public enum TrailingBytes: String, Sendable, Hashable {
    /// The file counts as damaged. A flipped bit in the second member's first bytes looks like this, and
    /// ignoring it would lose the rest of the file in silence.
    case refuse
    /// They are left out, as GNU gzip does with a warning. What begins like a member must still be one.
    case ignore
  }

  /// Where the name of the unpacked file comes from.
  public enum Naming: String, Sendable, Hashable {
    /// From the name of the packed file, without its suffix.
    case suffix
    /// From the header of the first member, if there is a name that is safe to use and the request names
    /// no file; otherwise as ``suffix``. Whoever made the file chooses it: an `.exe`, for example.
    case header
  }

  /// What becomes of a file that is not packed.
  public enum OtherFiles: String, Sendable, Hashable {
    /// It is an error.
    case refuse
    /// It stays as it is, unless its name says that it is packed.
    case keep
  }

  /// Bytes that the ratio never forbids: 1 GiB, which does no harm on a disk.
  public static let freeOutput: Int64 = 1 << 30
  /// The most bytes that are unpacked into memory: 256 MiB.
  public static let maximumInMemory: Int64 = 256 << 20

  /// The most bytes that may come out; unbounded when `nil`.
  public let maximumOutput: Int64?
  /// How many times the size of the packed file may come out; unbounded when `nil`.
  public let maximumRatio: Int64?
  /// What becomes of bytes behind the last member.
  public let trailingBytes: TrailingBytes
  /// Where the name comes from.
  public let naming: Naming
  /// What becomes of a file that is not packed.
  public let otherFiles: OtherFiles

  /// Unpacks gzip files.
  ///
  /// - Parameters:
  ///   - maximumOutput: the most bytes that may come out; 64 GiB unless set, unbounded when `nil`.
  ///   - maximumRatio: how many times its size a file may unpack to, beyond the first ``freeOutput`` bytes;
  ///     256 unless set, unbounded when `nil`.
  ///   - trailingBytes: what becomes of bytes behind the last member that are no member.
  ///   - naming: where the name of the unpacked file comes from.
  ///   - otherFiles: what becomes of a file that has neither the first bytes of a gzip file (RFC 1952 §2.3.1) nor the
  ///     name of one.
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

  /// The bound, and what differs from the defaults.
  public var summary: String {
    var parts = [maximumOutput.map { "at most \($0) bytes" } ?? "any size"]
    parts.append(maximumRatio.map { "at most \($0):1" } ?? "any ratio")
    if trailingBytes == .ignore { parts.append("trailing bytes ignored") }
    if naming == .header { parts.append("named by the header") }
    if otherFiles == .keep { parts.append("other files stay") }
    return parts.joined(separator: ", ")
  }

  /// Unpacks the file.
  public func process(_ input: File, in context: ProcessingContext) async throws -> File {
    if otherFiles == .keep, try !isPacked(input) { return input }
    let packed = try GzipInput(input.artifact)
    guard let workspace = context.workspace else {
      var bytes: [UInt8] = []
      let unpacked = try unpack(packed, limit: limit(forInput: packed.byteCount, inMemory: true)) { block in
        block.withUnsafeBytes { bytes.append(contentsOf: $0) }
      }
      let name = try name(for: input.artifact, unpacked, context)
      return File(artifact(input.artifact, at: .memory(bytes), named: name, size: unpacked.byteCount))
    }
    var output = try GzipOutput(in: workspace, beside: input.path)
    let unpacked = try unpack(packed, limit: limit(forInput: packed.byteCount, inMemory: false)) { block in
      try output.write(block)
    }
    let name = try name(for: input.artifact, unpacked, context)
    let path = try output.commit(as: name, durability: context.durability)
    return File(artifact(input.artifact, at: .path(path), named: name, size: unpacked.byteCount))
  }

  /// Whether a file is packed by its name or by its first bytes. One that is called so and is none is an error.
  private func isPacked(_ file: File) throws -> Bool {
    if UnpackedName.stripping(file.name) != file.name { return true }
    var isPacked = false
    try GzipInput(file.artifact).forEachBlock { block in
      block.withUnsafeBytes { isPacked = $0.starts(with: [0x1F, 0x8B]) }
      return false
    }
    return isPacked
  }

  /// What unpacking found out.
  struct Unpacked {
    var byteCount: Int64
    var headerName: [UInt8]?
  }

  /// Unpacks everything, block by block, and looks after each one whether the task was cancelled.
  func unpack(
    _ input: borrowing GzipInput, limit: OutputLimit, emit: (RawSpan) throws -> Void
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

  /// The lowest of the limits that hold for a file of this size.
  func limit(forInput byteCount: Int64, inMemory: Bool) -> OutputLimit {
    var limits: [OutputLimit] = []
    if let maximumOutput {
      limits.append(
        OutputLimit(
          byteCount: maximumOutput,
          explanation: "the file unpacks to more than \(maximumOutput) bytes: raise Gunzip(maximumOutput:) if it may")
      )
    }
    if let maximumRatio {
      let (product, overflow) = byteCount.multipliedReportingOverflow(by: maximumRatio)
      let bytes = max(Self.freeOutput, overflow ? .max : product)
      limits.append(
        OutputLimit(
          byteCount: bytes,
          explanation: "the file, of \(byteCount) bytes, unpacks to more than \(bytes) bytes, which is what a "
            + "decompression bomb does: raise Gunzip(maximumRatio:) if you trust it"))
    }
    if inMemory {
      limits.append(
        OutputLimit(
          byteCount: Self.maximumInMemory,
          explanation: "the file unpacks to more than \(Self.maximumInMemory) bytes, too many to hold in memory: "
            + "use a storage that writes files"))
    }
    return limits.min { $0.byteCount < $1.byteCount }
      ?? OutputLimit(byteCount: .max, explanation: "the file unpacks to more bytes than can be counted")
  }

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
      throw DownloadError(.unsafePath, "“\(name)” is not the name of a file")
    }
    return name
  }

  private func artifact(
    _ input: Artifact, at location: Artifact.Location, named name: String, size: Int64
  ) -> Artifact {
    // The wrapper's own type says nothing about what was in it.
    let wrappers = ["application/gzip", "application/x-gzip", "application/x-tgz", "application/octet-stream"]
    let type = input.mediaType.flatMap { type in
      let essence = type.prefix { $0 != ";" && $0 != " " }.lowercased()
      return wrappers.contains(essence) ? nil : type
    }
    return Artifact(kind: .file, location: location, name: name, size: .known(size), mediaType: type)
  }
}
