#if Archive
  import CArchive
  import DownpipeCore
  import DownpipeGzip
  import DownpipePOSIX

  /// Reads the entries of an archive from a source of blocks, which may be compressed.
  ///
  /// All decompressed bytes are counted, also those of headers and of entries that are skipped; reading ends when they
  /// exceed the limit. ``finish()`` verifies what follows the last entry.
  final class ArchiveReader {
    /// Compressed files in compressed files.
    private static let maximumLayers = 3

    let format: ArchiveFormat
    private let source: any BlockSource
    private let handle: ArchiveHandle
    private let directory: ZipDirectory?
    /// The most bytes of the header of an entry, with extended headers and maps of sparse files: 8 MiB.
    private static let maximumHeaderBytes: Int64 = 8 << 20
    /// The most entries of a cpio archive whose other names have not come yet: libarchive keeps them in a list, and compares
    /// each entry with all of them. Folders are among them.
    private static let maximumOpenLinks = 30_000

    /// The file that an entry of cpio is a name of.
    private struct FileID: Hashable {
      let device: Int64
      let inode: Int64
    }

    private var entryCount: Int64 = 0
    /// The names of files of a cpio archive that have not come yet.
    private var openLinks: [FileID: Int] = [:]
    /// The bytes of the names that libarchive keeps for them, at most.
    private var openNameBytes: Int64 = 0
    var isCPIO: Bool { handle.isCPIO }
    /// Whether the data of an entry need not be decoded to reach the next one.
    var skipsWithoutReading: Bool { format == .zip && source.seekableByteCount != nil }

    /// Opens an archive.
    ///
    /// - Parameters:
    ///   - packed: The bytes as they were downloaded.
    ///   - stream: The limit on the decompressed bytes of a compressed archive.
    ///   - maximumEntries: The limit on the entries that a zip file declares.
    init(_ packed: any BlockSource, stream: OutputLimit, maximumEntries: Int64) throws {
      var source = packed
      var layers = 0
      while let compression = Compression(of: try source.head()) {
        layers += 1
        guard layers <= Self.maximumLayers else {
          throw DownloadError(
            .tooLarge, "the archive is compressed more than \(Self.maximumLayers) times, as a decompression bomb is")
        }
        source = try DecodedBlocks.make(compression, of: source, limit: stream)
      }
      let file = (source as? ArtifactBlocks)?.bytes
      let directory = try file.flatMap { try ZipDirectory(in: $0) }
      let format = try ArchiveFormat(of: source, directory: directory)
      self.source = source
      self.format = format
      self.directory = format == .zip ? directory : nil
      if format == .zip, file != nil, directory == nil {
        throw DownloadError(.damaged, "the zip file has no directory at its end: it is truncated")
      }
      if let directory = self.directory, let file {
        // Before libarchive reads the directory into memory.
        guard directory.entryCount <= maximumEntries else {
          throw DownloadError(.tooLarge, Self.tooManyEntries(maximumEntries))
        }
        guard try directory.check(in: file, atMost: maximumEntries) <= maximumEntries else {
          throw DownloadError(.tooLarge, Self.tooManyEntries(maximumEntries))
        }
      }
      handle = try ArchiveHandle(
        source, what: "archive", names: format.names,
        maximumHeaderBytes: format == .stream ? Self.maximumHeaderBytes : nil
      ) { format.register(in: $0) }
    }

    static func tooManyEntries(_ maximum: Int64, _ addition: String = "") -> String {
      "the archive has more than \(maximum) entries\(addition): raise Unarchive.Limits.entries if you trust it"
    }

    /// Reads the next header; `nil` at the end of the archive.
    func next() throws -> ArchiveEntry? {
      guard let raw = try handle.next() else { return nil }
      entryCount += 1
      let entry = try handle.inLocale { Result { () throws(DownloadError) in try ArchiveEntry(raw, format: format) } }
        .get()
      if handle.isCPIO { try noteLinks(of: raw, entry.name) }
      handle.place = ", at entry \(entryCount), \(shown(entry.name))"
      return entry
    }

    /// Follows the list that libarchive keeps of entries with several names.
    private func noteLinks(of raw: OpaquePointer, _ name: String) throws {
      let count = Int(archive_entry_nlink(raw))
      guard count > 1 else { return }
      let id = FileID(device: Int64(archive_entry_dev(raw)), inode: archive_entry_ino64(raw))
      if let left = openLinks[id] {
        openLinks[id] = left > 1 ? left - 1 : nil
        return
      }
      openLinks[id] = count - 1
      openNameBytes += Int64(name.utf8.count)
      guard openLinks.count <= Self.maximumOpenLinks, openNameBytes <= Unarchive.Limits.pathBytes else {
        throw DownloadError(
          .tooLarge,
          "more than \(Self.maximumOpenLinks) entries of the cpio archive wait for their other names: unpack it yourself if "
            + "you trust it")
      }
    }

    /// Reads the next block of the entry's data; `nil` at its end.
    func block() throws -> (bytes: UnsafeRawBufferPointer, offset: Int64)? { try handle.block() }

    /// Reads to the end of the source, so that its checksums have been verified, and compares the number of entries.
    ///
    /// - Throws: `DownloadError` with `.damaged`.
    func finish() throws {
      if let directory, !directory.agrees(with: entryCount) {
        throw DownloadError(
          .damaged, "the archive's directory declares \(directory.entryCount) entries, but \(entryCount) were found")
      }
      guard source is DecodedBlocks else { return }
      while try !source.next().isEmpty { try Task.checkCancellation() }
    }
  }
#endif
