#if Archive
  /// Writes zip files with stored entries, byte by byte.
  struct ZipBuilder {
    private var local: [UInt8] = []
    private var central: [UInt8] = []
    private var count = 0
    /// Of the last entry.
    private var lastShared: [UInt8] = []
    private var lastSizes: [UInt8] = []
    private var lastOffset: UInt32 = 0

    /// Appends an entry.
    ///
    /// - Parameters:
    ///   - mode: The Unix mode with the type of the file.
    ///   - flags: 0x800 for names in UTF-8, 1 for encryption, 8 for a data descriptor.
    ///   - size: The declared size, in both headers; that of the data when `nil`.
    mutating func add(
      _ name: [UInt8], _ data: [UInt8] = [], mode: UInt32 = 0o100644, flags: UInt32 = 0x800, method: UInt32 = 0,
      size: Int? = nil, localName: [UInt8]? = nil
    ) {
      let crc = Self.crc32(data)
      let offset = UInt32(local.count)
      let describes = flags & 8 != 0
      let (length, stored) = (UInt32(size ?? data.count), UInt32(data.count))
      func sizes(_ isKnown: Bool) -> [UInt8] {
        Self.number(isKnown ? crc : 0, 4) + Self.number(isKnown ? stored : 0, 4) + Self.number(isKnown ? length : 0, 4)
      }
      let names = Self.number(UInt32(name.count), 2)
      let shared = Self.number(20, 2) + Self.number(flags, 2) + Self.number(method, 2) + Self.number(0x6000_0021, 4)
      local += [0x50, 0x4B, 3, 4] + shared + sizes(!describes)
      local += Self.number(UInt32((localName ?? name).count), 2) + [0, 0] + (localName ?? name) + data
      if describes { local += [0x50, 0x4B, 7, 8] + sizes(true) }
      central += [0x50, 0x4B, 1, 2, 20, 3] + shared + sizes(true) + names
      central += [UInt8](repeating: 0, count: 8) + Self.number(mode << 16, 4) + Self.number(offset, 4) + name
      (lastShared, lastSizes, lastOffset) = (shared, sizes(true), offset)
      count += 1
    }

    /// Appends an entry to the directory that has the bytes of the last one.
    mutating func addOverlap(_ name: String) {
      central += [0x50, 0x4B, 1, 2, 20, 3] + lastShared + lastSizes + Self.number(UInt32(name.utf8.count), 2)
      central += [UInt8](repeating: 0, count: 8) + Self.number(0o100644 << 16, 4) + Self.number(lastOffset, 4)
      central += Array(name.utf8)
      count += 1
    }

    mutating func add(
      _ name: String, _ data: [UInt8] = [], mode: UInt32 = 0o100644, flags: UInt32 = 0x800, size: Int? = nil
    ) {
      add(Array(name.utf8), data, mode: mode, flags: flags, size: size)
    }

    /// The zip file, with the number of entries that its end declares.
    func archive(declaring declared: Int? = nil) -> [UInt8] {
      let count = Self.number(UInt32(declared ?? count), 2)
      return local + central + [0x50, 0x4B, 5, 6, 0, 0, 0, 0] + count + count + Self.number(UInt32(central.count), 4)
        + Self.number(UInt32(local.count), 4) + [0, 0]
    }

    static func number(_ value: UInt32, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) }
    }

    static func crc32(_ bytes: [UInt8]) -> UInt32 {
      var crc = ~0 as UInt32
      for byte in bytes { crc = crc >> 8 ^ remainders[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] }
      return ~crc
    }

    private static let remainders = (0..<256 as Range<UInt32>).map { byte in
      (0..<8).reduce(byte) { value, _ in value >> 1 ^ (value & 1 == 1 ? 0xEDB8_8320 : 0) }
    }
  }
#endif
