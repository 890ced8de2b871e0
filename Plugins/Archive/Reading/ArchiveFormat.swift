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
      if head.starts(with: [0x50, 0x4B]), head.count >= 4, [3, 5, 7, 0x30].contains(head[2]) {
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
        self = directory != nil && !Self.isTar(head) ? .zip : .stream
      }
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
