#if Archive
  /// Writes archives of cpio in the format “newc”.
  struct CPIOBuilder {
    private var bytes: [UInt8] = []

    /// Appends an entry.
    ///
    /// - Parameters:
    ///   - inode: Names of one file have one number.
    ///   - links: How many names the file has.
    mutating func add(_ name: String, _ data: [UInt8] = [], inode: Int, links: Int = 1, mode: Int = 0o100644) {
      let fields = [inode, mode, 0, 0, links, 0, data.count, 0, 0, 0, 0, name.utf8.count + 1, 0]
      let digits = fields.map { field in
        let text = String(field, radix: 16)
        return String(repeating: "0", count: 8 - text.count) + text
      }
      bytes += Array("070701\(digits.joined())\(name)\0".utf8)
      pad()
      bytes += data
      pad()
    }

    private mutating func pad() { while bytes.count % 4 != 0 { bytes.append(0) } }

    var archive: [UInt8] {
      var whole = self
      whole.add("TRAILER!!!", inode: 0)
      return whole.bytes
    }
  }
#endif
