import CZlib
package import DownpipeCore

/// Decompresses a gzip stream (RFC 1952) that arrives in chunks of any size.
///
/// libz checks the header CRC, if there is one, and the CRC-32 and the length of each member. The output is verified
/// only when ``finish(emit:)`` has returned: do not publish it before. Memory is constant: libz's window, and one block
/// of output for all members, so that many small members do not cause many small writes.
package struct GzipDecoder: ~Copyable {
  /// The bytes in a block of output; only the last one is shorter.
  package static let blockSize = 256 << 10
  /// The longest name that is read from a header, in bytes, with its terminator.
  private static let nameCapacity = 1024

  private enum Position {
    /// Before a member, or after the last one.
    case firstByte
    /// After the first byte of a member's magic number.
    case secondByte
    /// In a member: its header, its data or its trailer.
    case insideMember
    /// In the zeros that tapes and block devices leave after the last member.
    case zeroPadding
    /// In trailing bytes that are ignored.
    case ignoredRest
  }

  // libz stores a pointer to the stream, so the stream must not move.
  private let stream: UnsafeMutablePointer<z_stream>
  private let header: UnsafeMutablePointer<gz_header>
  private let name: UnsafeMutablePointer<UInt8>
  private let block: UnsafeMutableRawBufferPointer
  /// Checked before bytes are emitted.
  package var limit: OutputLimit
  private let trailingBytes: Gunzip.TrailingBytes
  private var filled = 0
  private var position = Position.firstByte

  /// The number of complete members so far.
  private(set) var memberCount: Int64 = 0
  /// The bytes of output so far.
  package private(set) var byteCount: Int64 = 0

  package init(limit: OutputLimit, trailingBytes: Gunzip.TrailingBytes) throws(DownloadError) {
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
    // The largest window (15), and 16 for the gzip format only.
    let status = inflateInit2_(stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else {
      throw DownloadError(
        .processing, "libz cannot start (status \(status)): there is too little memory, or libz has another version")
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

  /// False when all following bytes are ignored.
  var wantsMore: Bool { position != .ignoredRest }

  /// The name in the header of the first member, if there is one that is not too long. It is untrusted input.
  var headerName: [UInt8]? {
    guard header.pointee.done == 1, header.pointee.name != nil else { return nil }
    let bytes = UnsafeBufferPointer(start: name, count: Self.nameCapacity)
    return bytes.firstIndex(of: 0).map { Array(bytes[..<$0]) }
  }

  /// Decompresses the next bytes of the stream, and calls `emit` with each full block.
  ///
  /// - Throws: ``DownloadError`` with `.damaged` for bytes that are not a gzip stream or are damaged, with
  ///   `.tooLarge` for a stream over the limit; errors of `emit`. Do not use the decoder after an error.
  package mutating func update(_ input: RawSpan, emit: (RawSpan) throws -> Void) throws {
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

  /// Ends the stream: checks that every member was complete, and emits the last block.
  ///
  /// - Throws: ``DownloadError`` with `.damaged` for a stream that is empty or truncated; errors of `emit`.
  package mutating func finish(emit: (RawSpan) throws -> Void) throws {
    switch position {
    case .firstByte where memberCount == 0:
      throw DownloadError(.damaged, "the file is empty and not a gzip file")
    case .secondByte where memberCount == 0:
      throw DownloadError(.damaged, "the file has one byte and is not a gzip file")
    // A single first byte after a member may be the start of a truncated one, so it is not ignored.
    case .secondByte, .insideMember:
      throw DownloadError(
        .damaged,
        "the gzip file is truncated: it ends inside member \(memberCount + 1), after \(byteCount) bytes of output")
    case .firstByte, .zeroPadding, .ignoredRest:
      try flush(emit)
    }
  }

  /// Whether the byte starts a member or the padding; otherwise the bytes after the last member are handled.
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

  /// Handles the first byte that does not belong to a member.
  private mutating func endOfMembers(at byte: UInt8) throws(DownloadError) {
    guard memberCount > 0 else {
      throw DownloadError(
        .damaged,
        "the file is not a gzip file: it does not start with the bytes 1f 8b. Remove Gunzip, or check whether the "
          + "server sent an error page instead")
    }
    guard trailingBytes == .ignore else {
      throw DownloadError(
        .damaged,
        "other bytes follow gzip member \(memberCount): the file is damaged, or something was "
          + "appended to it. Gunzip(trailingBytes: .ignore) ignores them")
    }
    position = .ignoredRest
  }

  /// Decompresses bytes of a member, up to the end of its trailer.
  ///
  /// - Returns: The number of bytes that libz consumed.
  private mutating func inflate(_ input: UnsafeRawBufferPointer, emit: (RawSpan) throws -> Void) throws -> Int {
    // libz counts in 32 bits.
    let count = min(input.count, 1 << 30)
    // libz only reads through `next_in`; its declaration lacks `const` for old compilers.
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
      // Checked before the output is emitted, so that no byte over the limit reaches the disk.
      guard byteCount <= limit.byteCount else { throw DownloadError(.tooLarge, limit.explanation) }
      let left = Int(stream.pointee.avail_in)
      switch status {
      case Z_STREAM_END:
        memberCount += 1
        position = .firstByte
        // Keeps the memory of the window. It also forgets the header structure, so that the first name stays.
        guard inflateReset(stream) == Z_OK else { throw damaged("libz failed to reset") }
        return count - left
      case Z_OK where left > 0 || stream.pointee.avail_out == 0:
        continue
      case Z_OK, Z_BUF_ERROR:
        // All input is consumed and all output is written. `Z_BUF_ERROR` means that there was nothing to do.
        guard left == 0 else { throw damaged("libz makes no progress") }
        return count
      case Z_MEM_ERROR:
        throw DownloadError(
          .processing, "libz has too little memory to decompress the file: run fewer downloads at once")
      default:
        throw damaged(stream.pointee.msg.map { String(cString: $0) } ?? "libz status \(status)")
      }
    }
  }

  private func damaged(_ reason: String) -> DownloadError {
    DownloadError(
      .damaged,
      "the gzip file is damaged: \(reason), in member \(memberCount + 1) after \(byteCount) bytes of output")
  }

  private mutating func flush(_ emit: (RawSpan) throws -> Void) throws {
    guard filled > 0 else { return }
    try emit(UnsafeRawBufferPointer(rebasing: block[..<filled]).bytes)
    filled = 0
  }
}
