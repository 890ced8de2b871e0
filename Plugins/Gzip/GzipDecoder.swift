import CZlib
import DownpipeCore

/// The most bytes that may come out of a stream, and why, for the message when there are more.
struct OutputLimit: Sendable, Hashable {
  /// The most bytes.
  var byteCount: Int64
  /// What set the limit and how to raise it.
  var explanation: String
}

/// Unpacks a gzip stream (RFC 1952) that is pushed through it piece by piece, however it is cut.
///
/// libz checks the header CRC, where there is one, and the CRC-32 and the length of each member. What
/// comes out is only proven once ``finish(emit:)`` has returned: a caller must not publish it before.
/// Memory is constant: libz's window, and one block of output that is shared by all members, so that a
/// stream of many tiny members does not cause a write each.
struct GzipDecoder: ~Copyable {
  /// The size of the blocks that come out; only the last one is shorter.
  static let blockSize = 256 << 10
  /// The longest name that is read from a header, with its terminator.
  private static let nameCapacity = 1024

  private enum Position {
    /// Before a member, or after the last one.
    case firstByte
    /// After a byte that begins a member's magic number.
    case secondByte
    /// In a member: its header, its data or its trailer.
    case insideMember
    /// In the zeros that tapes and block devices leave after the last member.
    case zeroPadding
    /// In bytes that are no member, and that the policy is to ignore.
    case ignoredRest
  }

  // libz keeps a pointer back to its stream, so the stream must never move.
  private let stream: UnsafeMutablePointer<z_stream>
  private let header: UnsafeMutablePointer<gz_header>
  private let name: UnsafeMutablePointer<UInt8>
  private let block: UnsafeMutableRawBufferPointer
  private let limit: OutputLimit
  private let trailingBytes: Gunzip.TrailingBytes
  private var filled = 0
  private var position = Position.firstByte

  /// The members that were unpacked to their end.
  private(set) var memberCount: Int64 = 0
  /// The bytes that came out so far.
  private(set) var byteCount: Int64 = 0

  init(limit: OutputLimit, trailingBytes: Gunzip.TrailingBytes) throws(DownloadError) {
    self.limit = limit
    self.trailingBytes = trailingBytes
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    name = .allocate(capacity: Self.nameCapacity)
    name.initialize(repeating: 0, count: Self.nameCapacity)
    header = .allocate(capacity: 1)
    header.initialize(to: gz_header())
    header.pointee.name = name
    header.pointee.name_max = UInt32(Self.nameCapacity)
    block = .allocate(byteCount: Self.blockSize, alignment: 64)
    // The greatest window, and 16 for gzip's wrapper alone: no zlib, no guessing.
    let status = inflateInit2_(stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else {
      throw DownloadError(.processing, "libz cannot unpack (status \(status)): too little memory, or another version")
    }
    inflateGetHeader(stream, header)
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
    header.deallocate()
    name.deallocate()
    block.deallocate()
  }

  /// False once nothing that follows can matter any more.
  var wantsMore: Bool { position != .ignoredRest }

  /// The name in the first member's header, if it has one that is not too long; as hostile as any input.
  var headerName: [UInt8]? {
    guard header.pointee.done == 1, header.pointee.name != nil else { return nil }
    let bytes = UnsafeBufferPointer(start: name, count: Self.nameCapacity)
    return bytes.firstIndex(of: 0).map { Array(bytes[..<$0]) }
  }

  /// Unpacks the next bytes of the stream; calls `emit` with each block that is full.
  ///
  /// - Throws: ``DownloadError`` with `.processing` for bytes that are no gzip stream or are damaged, with
  ///   `.tooLarge` for a stream over the limit; what `emit` throws. The decoder is of no use afterwards.
  mutating func update(_ input: RawSpan, emit: (RawSpan) throws -> Void) throws {
    try input.withUnsafeBytes { bytes in
      var offset = 0
      while offset < bytes.count {
        switch position {
        case .firstByte:
          if try begins(bytes[offset]) { offset += 1 }
        case .secondByte:
          guard bytes[offset] == 0x8B else {
            try endOfMembers(at: bytes[offset])
            continue
          }
          offset += 1
          position = .insideMember
          try withUnsafeBytes(of: (0x1F, 0x8B) as (UInt8, UInt8)) { _ = try inflate($0, emit: emit) }
        case .insideMember:
          offset += try inflate(UnsafeRawBufferPointer(rebasing: bytes[offset...]), emit: emit)
        case .zeroPadding:
          if bytes[offset] == 0 { offset += 1 } else { try endOfMembers(at: bytes[offset]) }
        case .ignoredRest:
          return
        }
      }
    }
  }

  /// Ends the stream: emits what is left, once it is certain that every member was whole.
  ///
  /// - Throws: ``DownloadError`` with `.processing` for a stream that is empty or cut; what `emit` throws.
  mutating func finish(emit: (RawSpan) throws -> Void) throws {
    switch position {
    case .firstByte where memberCount == 0:
      throw DownloadError(.processing, "the file is empty, which no gzip file is: download it again")
    case .secondByte where memberCount == 0:
      throw DownloadError(.processing, "the file is no gzip file: it has a single byte")
    // A lone first byte after a member may be all that is left of another one, so it is not ignored.
    case .secondByte, .insideMember:
      throw DownloadError(
        .processing,
        "the gzip file is cut: it ends inside member \(memberCount + 1), after \(byteCount) bytes of output; "
          + "download it again")
    case .firstByte, .zeroPadding, .ignoredRest:
      try flush(emit)
    }
  }

  /// Whether the byte begins a member; otherwise the members are over.
  private mutating func begins(_ byte: UInt8) throws(DownloadError) -> Bool {
    if byte == 0x1F {
      position = .secondByte
      return true
    }
    if byte == 0, memberCount > 0 {
      position = .zeroPadding
      return true
    }
    try endOfMembers(at: byte)
    return false
  }

  /// Deals with a byte that belongs to no member.
  private mutating func endOfMembers(at byte: UInt8) throws(DownloadError) {
    guard memberCount > 0 else {
      throw DownloadError(
        .processing,
        "the file is no gzip file: it does not begin with the bytes 1f 8b. Leave Gunzip out, or see whether the "
          + "server sent an error page instead")
    }
    guard trailingBytes == .ignore else {
      throw DownloadError(
        .processing,
        "bytes that are no gzip member follow member \(memberCount): the file is damaged, or something was "
          + "appended to it. Gunzip(trailingBytes: .ignore) leaves them out")
    }
    position = .ignoredRest
  }

  /// Lets libz take bytes of a member; stops behind its trailer.
  /// - Returns: how many were taken.
  private mutating func inflate(_ input: UnsafeRawBufferPointer, emit: (RawSpan) throws -> Void) throws -> Int {
    // libz counts in 32 bits.
    let count = min(input.count, 1 << 30)
    // libz only reads through `next_in`; its declaration lacks the `const` for the sake of old compilers.
    stream.pointee.next_in = UnsafeMutablePointer(
      mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
    stream.pointee.avail_in = UInt32(count)
    defer {
      stream.pointee.next_in = nil
      stream.pointee.avail_in = 0
    }
    while true {
      if filled == block.count { try flush(emit) }
      let room = block.count - filled
      stream.pointee.next_out = block.baseAddress?.advanced(by: filled).assumingMemoryBound(to: UInt8.self)
      stream.pointee.avail_out = UInt32(room)
      let status = CZlib.inflate(stream, Z_NO_FLUSH)
      let produced = room - Int(stream.pointee.avail_out)
      filled += produced
      byteCount += Int64(produced)
      // Before it is emitted: never a byte over the limit reaches the disk.
      guard byteCount <= limit.byteCount else { throw DownloadError(.tooLarge, limit.explanation) }
      let left = Int(stream.pointee.avail_in)
      switch status {
      case Z_STREAM_END:
        memberCount += 1
        position = .firstByte
        // Keeps the window's memory. It also lets go of the header, so that only the first one's is kept.
        guard inflateReset(stream) == Z_OK else { throw damaged("libz lost its state") }
        return count - left
      case Z_OK where left > 0 || stream.pointee.avail_out == 0:
        continue
      case Z_OK, Z_BUF_ERROR:
        // Everything is taken and everything has come out. `Z_BUF_ERROR` says that there was nothing to do.
        guard left == 0 else { throw damaged("libz makes no progress") }
        return count
      case Z_MEM_ERROR:
        throw DownloadError(.processing, "libz has too little memory to unpack the file")
      default:
        throw damaged(stream.pointee.msg.map { String(cString: $0) } ?? "libz status \(status)")
      }
    }
  }

  private func damaged(_ reason: String) -> DownloadError {
    DownloadError(
      .processing,
      "the gzip file is damaged: \(reason), in member \(memberCount + 1) after \(byteCount) bytes of output; "
        + "download it again")
  }

  private mutating func flush(_ emit: (RawSpan) throws -> Void) throws {
    guard filled > 0 else { return }
    try emit(UnsafeRawBufferPointer(rebasing: block[..<filled]).bytes)
    filled = 0
  }
}
