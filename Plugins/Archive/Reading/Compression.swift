#if Archive
  import CArchive

  /// The compressions that are decoded, recognised by their first bytes.
  enum Compression: String, Sendable, CaseIterable {
    case gzip, xz, zstd, bzip2, lz4

    /// The compression of a file that begins with these bytes; `nil` for any other file.
    init?(of head: UnsafeRawBufferPointer) {
      func starts(_ bytes: UInt8...) -> Bool { head.starts(with: bytes) }
      if starts(0x1F, 0x8B) {
        self = .gzip
      } else if starts(0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00) {
        self = .xz
      } else if starts(0x28, 0xB5, 0x2F, 0xFD) {
        self = .zstd
      } else if head.count >= 4, (0x50...0x5F).contains(head[0]), head[1...].starts(with: [0x2A, 0x4D, 0x18]) {
        // A frame to be skipped, with which pzstd begins (RFC 8878 §3.1.2). lz4 has the same frames and begins with none.
        self = .zstd
      } else if head.count >= 10, starts(0x42, 0x5A, 0x68), (0x31...0x39).contains(head[3]),
        head[4...].starts(with: [0x31, 0x41, 0x59, 0x26, 0x53, 0x59])
          || head[4...].starts(with: [0x17, 0x72, 0x45, 0x38, 0x50, 0x90])
      {
        self = .bzip2
      } else if starts(0x04, 0x22, 0x4D, 0x18) || starts(0x02, 0x21, 0x4C, 0x18) {
        self = .lz4
      } else {
        return nil
      }
    }

    /// Whether the library decodes it itself. It would start a program of the system otherwise, which is never done.
    var isAvailable: Bool {
      switch self {
      case .gzip: true
      case .xz: archive_liblzma_version() != nil
      case .zstd: archive_libzstd_version() != nil
      case .bzip2: archive_bzlib_version() != nil
      case .lz4: archive_liblz4_version() != nil
      }
    }

    /// The library's number of its decoder; `nil` for gzip, which libz decodes.
    var filter: CInt? {
      switch self {
      case .gzip: nil
      case .xz: ARCHIVE_FILTER_XZ
      case .zstd: ARCHIVE_FILTER_ZSTD
      case .bzip2: ARCHIVE_FILTER_BZIP2
      case .lz4: ARCHIVE_FILTER_LZ4
      }
    }
  }

  /// Known formats that are not read, for a message that says what a file is.
  enum OtherFormat {
    private static let signatures: [(offset: Int, bytes: [UInt8], name: String)] = [
      (0, Array("Rar!".utf8), "a RAR archive"), (0, Array("MSCF".utf8), "a Windows cabinet"),
      (0, Array("xar!".utf8), "a xar archive"), (0, Array("!<arch>\n".utf8), "an ar archive"),
      (2, Array("-lh".utf8), "an LHA archive"), (0, [0xED, 0xAB, 0xEE, 0xDB], "an RPM package"),
      (0, [0x1F, 0x9D], "compressed with compress"), (0, Array("LZIP".utf8), "compressed with lzip"),
      (0, [0x89, 0x4C, 0x5A, 0x4F], "compressed with lzop"), (0, Array("LRZI".utf8), "compressed with lrzip"),
      (0, [0x5D, 0, 0], "compressed with lzma"),
    ]

    /// What a file with these first bytes is; `nil` if they are of no such format.
    static func name(of head: UnsafeRawBufferPointer) -> String? {
      signatures.first { $0.offset < head.count && head[$0.offset...].starts(with: $0.bytes) }?.name
    }
  }
#endif
