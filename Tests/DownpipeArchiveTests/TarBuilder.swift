#if Archive
  /// Writes tar archives byte by byte, also those that no program writes.
  struct TarBuilder {
    private(set) var bytes: [UInt8] = []

    /// Appends an entry of POSIX ustar.
    ///
    /// - Parameters:
    ///   - type: `0` file, `1` hard link, `2` symbolic link, `3` and `4` devices, `5` folder, `6` FIFO.
    ///   - size: The declared size; that of the data when `nil`.
    mutating func add(
      _ name: String, _ data: [UInt8] = [], type: Character = "0", link: String = "", mode: Int = 0o644,
      size: Int? = nil, user: Int = 0, time: Int = 1_000_000_000
    ) {
      add(Array(name.utf8), data, type: type, link: Array(link.utf8), mode: mode, size: size, user: user, time: time)
    }

    mutating func add(
      _ name: [UInt8], _ data: [UInt8] = [], type: Character = "0", link: [UInt8] = [], mode: Int = 0o644,
      size: Int? = nil, user: Int = 0, time: Int = 1_000_000_000
    ) {
      if name.count > 100 { addGNU("L", name) }
      if link.count > 100 { addGNU("K", link) }
      append(
        Self.header(
          Array(name.prefix(100)), type: type, link: Array(link.prefix(100)), mode: mode, size: size ?? data.count,
          user: user, time: time), data)
    }

    /// Appends an entry whose path and link are in a pax header.
    mutating func addPax(
      _ records: [(String, String)], name: String = "short", _ data: [UInt8] = [], type: Character = "0"
    ) {
      var text: [UInt8] = []
      for (key, value) in records {
        let rest = " \(key)=\(value)\n".utf8.count
        var length = rest
        while length != rest + String(length).count { length = rest + String(length).count }
        text += Array("\(length) \(key)=\(value)\n".utf8)
      }
      append(Self.header(Array("pax".utf8), type: "x", link: [], mode: 0o644, size: text.count, user: 0, time: 0), text)
      add(name, data, type: type)
    }

    /// The archive with its end.
    var archive: [UInt8] { bytes + [UInt8](repeating: 0, count: 1024) }

    private mutating func addGNU(_ type: Character, _ text: [UInt8]) {
      let text = text + [0]
      append(
        Self.header(
          Array("././@LongLink".utf8), type: type, link: [], mode: 0, size: text.count, user: 0, time: 0), text)
    }

    private mutating func append(_ header: [UInt8], _ data: [UInt8]) {
      bytes += header + data
      bytes += [UInt8](repeating: 0, count: (512 - data.count % 512) % 512)
    }

    static func header(
      _ name: [UInt8], type: Character, link: [UInt8], mode: Int, size: Int, user: Int, time: Int
    ) -> [UInt8] {
      var block = [UInt8](repeating: 0, count: 512)
      func put(_ bytes: [UInt8], _ offset: Int) { block.replaceSubrange(offset..<offset + bytes.count, with: bytes) }
      func octal(_ value: Int, _ width: Int) -> [UInt8] {
        let digits = String(value, radix: 8)
        return Array((String(repeating: "0", count: width - 1 - digits.count) + digits).utf8) + [0]
      }
      put(name, 0)
      put(octal(mode, 8), 100)
      put(octal(user, 8), 108)
      put(octal(user, 8), 116)
      put(octal(size, 12), 124)
      put(octal(time, 12), 136)
      put(Array("        ".utf8), 148)
      put([type.asciiValue ?? 0x30], 156)
      put(link, 157)
      put(Array("ustar\u{0}00".utf8), 257)
      put(octal(0, 8), 329)
      put(octal(0, 8), 337)
      put(octal(block.reduce(0) { $0 + Int($1) }, 7) + [0x20], 148)
      return block
    }
  }
#endif
