#if Archive
  import CArchive
  import DownpipeCore

  /// The families of archives, recognised by their contents.
  enum ArchiveFormat {
    case zip, sevenZip
    /// Tar in all dialects, and cpio: headers between the files, names as bytes.
    case stream

    /// The format of the archive that the source has.
    ///
    /// - Throws: `DownloadError` with `.processing` for a known format that is not read.
    init(of source: any BlockSource, directory: ZipDirectory?) throws {
      let head = try source.head()
      if Self.isTar(head) || Self.isCPIO(head) || Self.isOldTar(head) {
        // Its last file may be a zip, and its first name may begin as any format does.
        self = .stream
      } else if Self.zipHeads.contains(where: head.starts) {
        self = .zip
      } else if head.starts(with: [0x37, 0x7A, 0xBC, 0xAF, 0x27, 0x1C]) {
        self = .sevenZip
        guard source.seekableByteCount != nil else {
          throw DownloadError(
            .processing, "a 7z archive in a compressed file is not read: add Decompress before Unarchive")
        }
      } else if let name = OtherFormat.name(of: head) {
        throw DownloadError(
          .processing, "the file is \(name), which Unarchive does not read: it reads tar, zip, 7z and cpio")
      } else {
        // A program that unpacks itself is a zip with something before it.
        self = directory != nil ? .zip : .stream
      }
    }

    /// A file, the end of an empty zip, and the first part of several.
    private static let zipHeads: [[UInt8]] = [
      [0x50, 0x4B, 3, 4], [0x50, 0x4B, 5, 6], [0x50, 0x4B, 7, 8], [0x50, 0x4B, 0x30, 0x30],
    ]

    /// Whether a file begins as a cpio does: in letters, old and new, or binary in either order of bytes.
    static func isCPIO(_ head: UnsafeRawBufferPointer) -> Bool {
      ["070701", "070702", "070707"].contains { head.starts(with: Array($0.utf8)) }
        || head.starts(with: [0xC7, 0x71]) || head.starts(with: [0x71, 0xC7])
    }

    /// Whether a file begins with a header of the first tar, which has only a checksum.
    static func isOldTar(_ head: UnsafeRawBufferPointer) -> Bool {
      guard head.count >= 512, head[0] != 0 else { return false }
      let field = 148..<156
      let digits = head[field].drop { $0 == 0x20 }.prefix { (0x30...0x37).contains($0) }
      guard !digits.isEmpty, let wanted = Int(String(decoding: digits, as: UTF8.self), radix: 8) else { return false }
      return wanted == head[..<512].indices.reduce(0) { $0 + (field.contains($1) ? 0x20 : Int(head[$1])) }
    }

    /// Whether a file begins as a tar of POSIX or GNU does.
    static func isTar(_ head: UnsafeRawBufferPointer) -> Bool {
      head.count >= 262 && head[257...].starts(with: Array("ustar".utf8))
    }

    var names: ArchiveHandle.Names { self == .stream ? .plain : .unicode }

    /// Whether a later entry of the same name replaces an earlier one, as in archives that are appended to.
    var replacesEntries: Bool { self == .stream }

    /// Whether a backslash in a name separates folders for some programs, and is a letter for others.
    var hasBackslashes: Bool { self != .stream }

    func register(in archive: OpaquePointer) {
      switch self {
      case .zip:
        archive_read_support_format_zip(archive)
        archive_read_set_format_option(archive, "zip", "mac-ext", nil)
      case .sevenZip:
        archive_read_support_format_7zip(archive)
      case .stream:
        archive_read_support_format_tar(archive)
        archive_read_support_format_cpio(archive)
        archive_read_set_format_option(archive, "tar", "mac-ext", nil)
      }
    }
  }
#endif
