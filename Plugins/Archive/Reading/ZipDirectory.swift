#if Archive
  import DownpipeCore
  import DownpipePOSIX

  /// The directory at the end of a zip file (APPNOTE §4.3.12 to §4.3.16), read for what libarchive does not report: the
  /// number of entries, and names with a NUL, at which it cuts them.
  struct ZipDirectory {
    /// The number of entries that the file declares.
    let entryCount: Int64
    /// Whether the number is only known modulo 65,536.
    let isShort: Bool
    /// Whether the directory is where the file says, and nowhere else.
    private let isConsistent: Bool
    private let start: Int64
    private let end: Int64
    /// What was put before the archive without a change of its offsets.
    private let shift: Int64

    private static let recordSize = 22
    private static let headerSize = 46

    /// Finds the directory; `nil` for a file without one.
    init?(in bytes: ArtifactBytes) throws {
      let size = bytes.byteCount
      let tailSize = Int(min(size, Int64(Self.recordSize + 0xFFFF)))
      let tailStart = size - Int64(tailSize)
      let tail = try Self.read(bytes, tailSize, at: tailStart)
      guard let index = Self.lastRecord(in: tail),
        index + Self.recordSize + Self.number(tail, index + 20, 2) <= tail.count
      else { return nil }
      let position = tailStart + Int64(index)
      var count = Int64(Self.number(tail, index + 10, 2))
      var length = Int64(Self.number(tail, index + 12, 4))
      var declared = Int64(Self.number(tail, index + 16, 4))
      var end = position
      var isShort = true
      // The locator of the zip64 record is directly before the record.
      if position >= 20 {
        let locator = try Self.read(bytes, 20, at: position - 20)
        if locator.starts(with: [0x50, 0x4B, 6, 7]) {
          let offset = Int64(clamping: Self.wide(locator, 8))
          let record = try Self.read(bytes, 56, at: offset)
          if record.count == 56, record.starts(with: [0x50, 0x4B, 6, 6]) {
            count = Int64(clamping: Self.wide(record, 32))
            length = Int64(clamping: Self.wide(record, 40))
            declared = Int64(clamping: Self.wide(record, 48))
            end = offset
            isShort = false
          }
        }
      }
      entryCount = count
      // libarchive begins to read the directory of a zip64 at its declared place, and reads on beyond its length.
      isConsistent = isShort || (length >= 0 && declared >= 0 && declared <= end && length == end - declared)
      self.isShort = isShort
      self.end = end
      // Counted from its end: something may have been put before the archive, and its offsets left as they were.
      start = max(0, end - length)
      shift = max(0, start - declared)
    }

    /// Whether a number of entries is the declared one.
    func agrees(with count: Int64) -> Bool {
      isShort ? count & 0xFFFF == entryCount & 0xFFFF : count == entryCount
    }

    /// Checks the names as they are stored.
    ///
    /// - Parameter maximum: The number of entries after which the check ends.
    /// - Returns: The number of entries in the directory, at most one more than `maximum`.
    /// - Throws: `DownloadError` with `.unsafePath` for a name with a NUL, in the directory or before the entry's data;
    ///   `.damaged` for a directory that cannot be read.
    func check(in bytes: ArtifactBytes, atMost maximum: Int64) throws -> Int64 {
      guard isConsistent else {
        throw DownloadError(
          .damaged, "the directory of the zip file is not where its end says, or has another length")
      }
      var position = start
      var count: Int64 = 0
      while position < end, count <= maximum {
        try Task.checkCancellation()
        let header = try Self.read(bytes, Self.headerSize, at: position)
        // A signature of the directory may be at its end.
        if header.starts(with: [0x50, 0x4B, 5, 5]) { break }
        guard header.count == Self.headerSize, header.starts(with: [0x50, 0x4B, 1, 2]) else {
          throw DownloadError(.damaged, "the directory of the zip file is damaged, at entry \(count + 1)")
        }
        count += 1
        let length = Self.number(header, 28, 2)
        let name = try Self.read(bytes, length, at: position + Int64(Self.headerSize))
        try Self.refuseNUL(in: name)
        let extra = try Self.read(bytes, Self.number(header, 30, 2), at: position + Int64(Self.headerSize + length))
        try checkEntry(at: Self.offset(header, extra), in: bytes)
        position += Int64(Self.headerSize + length + extra.count + Self.number(header, 32, 2))
      }
      return count
    }

    /// Checks the name before an entry's data, which libarchive takes.
    private func checkEntry(at offset: Int64, in bytes: ArtifactBytes) throws {
      let (place, isTooFar) = offset.addingReportingOverflow(shift)
      guard !isTooFar, place >= 0, place < bytes.byteCount else { return }
      let header = try Self.read(bytes, 30, at: place)
      // libarchive refuses an entry that is not there.
      guard header.count == 30, header.starts(with: [0x50, 0x4B, 3, 4]) else { return }
      try Self.refuseNUL(in: try Self.read(bytes, Self.number(header, 26, 2), at: place + 30))
    }

    private static func refuseNUL(in name: [UInt8]) throws {
      guard name.contains(0) else { return }
      throw DownloadError(
        .unsafePath,
        "the archive has a name with a NUL, \(shown(String(decoding: name, as: UTF8.self))): programs "
          + "would see different names. Do not trust it")
    }

    /// The offset of an entry in the archive, which is in the extra field of zip64 if it is large (APPNOTE §4.5.3).
    private static func offset(_ header: [UInt8], _ extra: [UInt8]) -> Int64 {
      let short = number(header, 42, 4)
      guard short == 0xFFFF_FFFF else { return Int64(short) }
      var index = 0
      while index + 4 <= extra.count {
        let size = number(extra, index + 2, 2)
        if number(extra, index, 2) == 1 {
          // Only those sizes are before it that do not fit in the header either.
          let place = index + 4 + 8 * [24, 20].count { number(header, $0, 4) == 0xFFFF_FFFF }
          return place + 8 <= min(extra.count, index + 4 + size) ? Int64(clamping: wide(extra, place)) : .max
        }
        index += 4 + size
      }
      return Int64(short)
    }

    private static func read(_ bytes: ArtifactBytes, _ count: Int, at offset: Int64) throws -> [UInt8] {
      var block = [UInt8](repeating: 0, count: count)
      let got = try block.withUnsafeMutableBytes { try bytes.read(into: $0, at: offset) }
      block.removeLast(count - got)
      return block
    }

    /// Where the record at the end of the directory begins: the last one, as libarchive takes it, because an earlier one
    /// might be read here only.
    private static func lastRecord(in tail: [UInt8]) -> Int? {
      var index = tail.count - recordSize
      while index >= 0 {
        if tail[index] == 0x50, tail[index + 1] == 0x4B, tail[index + 2] == 5, tail[index + 3] == 6 { return index }
        index -= 1
      }
      return nil
    }

    private static func number(_ bytes: [UInt8], _ offset: Int, _ count: Int) -> Int {
      bytes[offset..<offset + count].reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    private static func wide(_ bytes: [UInt8], _ offset: Int) -> UInt64 {
      bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
  }
#endif
