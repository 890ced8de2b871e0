#if Archive
  import CArchive
  import DownpipeCore

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// A reader of libarchive that pulls its bytes from a ``BlockSource``. One thread at a time uses it.
  final class ArchiveHandle {
    /// How names are stored.
    enum Names {
      /// As bytes, which are returned as they are.
      case plain
      /// As Unicode text, which libarchive converts to UTF-8 (and to its composed form).
      case unicode
    }

    let archive: OpaquePointer
    private let input: Input
    private let locale: locale_t?
    /// What is read, for messages.
    private let what: String
    private var isOpen = false
    /// Where in the archive a failure occurred, for messages.
    var place = ""
    /// Whether the present entry is encrypted.
    private var isEncrypted = false
    private let maximumHeaderBytes: Int64?

    /// Opens an archive.
    ///
    /// - Parameters:
    ///   - what: What is read, for messages: `xz file`.
    ///   - maximumHeaderBytes: The most bytes that the header of one entry may have; `nil` for no limit. The library keeps what
    ///     it reads there, such as the map of a sparse file, with several times as much memory.
    ///   - setUp: Chooses formats and filters.
    /// - Throws: Errors of the source; `DownloadError` with `.damaged` if the format is not recognised.
    init(
      _ source: any BlockSource, what: String, names: Names, maximumHeaderBytes: Int64? = nil,
      _ setUp: (OpaquePointer) -> Void
    ) throws {
      guard let archive = archive_read_new() else {
        throw DownloadError(.processing, "there is too little memory to read the archive: run fewer downloads at once")
      }
      self.archive = archive
      self.what = what
      input = Input(source)
      self.maximumHeaderBytes = maximumHeaderBytes
      locale = names == .plain ? downpipe_plain_locale() : downpipe_unicode_locale()
      setUp(archive)
      archive_read_set_callback_data(archive, Unmanaged.passUnretained(input).toOpaque())
      archive_read_set_read_callback(archive) { _, context, block in
        guard let context else { return -1 }
        return Unmanaged<Input>.fromOpaque(context).takeUnretainedValue().read(block)
      }
      if source.seekableByteCount != nil {
        archive_read_set_seek_callback(archive) { _, context, offset, origin in
          guard let context else { return Int64(ARCHIVE_FATAL) }
          return Unmanaged<Input>.fromOpaque(context).takeUnretainedValue().seek(offset, origin)
        }
      }
      guard inLocale({ archive_read_open1(archive) }) >= ARCHIVE_WARN else { throw failure() }
      isOpen = true
    }

    deinit {
      archive_read_free(archive)
      if let locale { freelocale(locale) }
    }

    /// Runs a call that may convert names.
    func inLocale<Result>(_ body: () -> Result) -> Result {
      guard let locale else { return body() }
      let earlier = uselocale(locale)
      defer { _ = uselocale(earlier) }
      return body()
    }

    /// Reads the header of the next entry; `nil` at the end. The entry is valid until the next call.
    func next() throws -> OpaquePointer? {
      input.allowance = maximumHeaderBytes
      defer { input.allowance = nil }
      var entry: OpaquePointer?
      isEncrypted = false
      defer { isEncrypted = entry.map { archive_entry_is_encrypted($0) != 0 } ?? false }
      switch inLocale({ archive_read_next_header(archive, &entry) }) {
      case ARCHIVE_OK:
        return entry
      case ARCHIVE_EOF:
        if let failure = input.failure { throw failure }
        return nil
      case ARCHIVE_WARN where text.contains("converted from"):
        // In the locale "C" no letter beyond ASCII can be converted, which leaves the bytes as they are.
        return entry
      default:
        throw failure()
      }
    }

    /// Throws the error that the library met when it looked for the first byte: it takes such a file for an empty one.
    /// To be called before ``next()``, which clears the error.
    func refuseSilentFailure() throws {
      if archive_error_string(archive) != nil { throw failure() }
    }

    /// Reads the next block of the entry's data; `nil` at its end. Valid until the next call.
    func block() throws -> (bytes: UnsafeRawBufferPointer, offset: Int64)? {
      while true {
        var start: UnsafeRawPointer?
        var count = 0
        var offset: Int64 = 0
        switch archive_read_data_block(archive, &start, &count, &offset) {
        case ARCHIVE_OK:
          if count > 0 { return (UnsafeRawBufferPointer(start: start, count: count), offset) }
        case ARCHIVE_EOF:
          if let failure = input.failure { throw failure }
          return nil
        default:
          throw failure()
        }
      }
    }

    /// Whether the archive is one of cpio.
    var isCPIO: Bool { archive_format(archive) & 0xFF_0000 == ARCHIVE_FORMAT_CPIO }

    /// Whether entries are known to be encrypted. Without a format the library would read a null pointer.
    var hasEncryptedEntries: Bool { isOpen && archive_read_has_encrypted_entries(archive) == 1 }

    /// Checks that the filter has taken all bytes of the source, or that only zeros follow, the padding of tapes.
    ///
    /// - Throws: `DownloadError` with `.damaged`.
    func refuseTrailingBytes() throws {
      guard try !input.endsWithZeros(after: archive_filter_bytes(archive, -1)) else { return }
      throw DownloadError(
        .damaged, "other bytes follow the end of the \(what): it is damaged, or something was appended to it")
    }

    private var text: String { archive_error_string(archive).map { String(cString: $0) } ?? "no reason given" }

    /// The error of the call that just failed.
    private func failure() -> any Error {
      if let failure = input.failure { return failure }
      let (text, code) = (text, archive_errno(archive))
      let lower = text.lowercased()
      // Before the first entry, its header may be encrypted. Entries that are left out may be.
      if (place.isEmpty ? hasEncryptedEntries : isEncrypted) || lower.contains("encrypt")
        || lower.contains("passphrase")
      {
        return DownloadError.encrypted(place)
      }
      if code == ENOMEM || lower.contains("memory") {
        return DownloadError(
          .processing,
          "the \(what) needs more memory than libarchive may use\(place): \(text). Unpack it with the "
            + "program that made it")
      }
      if lower.contains("unsupported") || lower.contains("not supported") {
        return DownloadError(
          .processing, "libarchive cannot read the \(what)\(place): \(text). Unpack it with the program that made it")
      }
      if lower.contains("unrecognized") {
        return DownloadError(
          .damaged,
          "the file is not an archive (tar, zip, 7z or cpio): check whether the server sent an error page "
            + "instead")
      }
      return DownloadError(.damaged, "the \(what) is damaged or truncated\(place): \(text)")
    }

    /// What the callbacks work on.
    private final class Input {
      private let source: any BlockSource
      private var last = UnsafeRawBufferPointer(start: nil, count: 0)
      /// The bytes that were handed over.
      private var taken: Int64 = 0
      /// The error of the source, which ended the reading.
      private(set) var failure: (any Error)?
      /// The bytes that may be handed over until the present header ends; `nil` for no limit.
      var allowance: Int64?

      init(_ source: any BlockSource) { self.source = source }

      func read(_ block: UnsafeMutablePointer<UnsafeRawPointer?>?) -> Int {
        guard failure == nil else { return -1 }
        do {
          try Task.checkCancellation()
          if let allowance, allowance < 0 {
            throw DownloadError(
              .tooLarge,
              "the header of an entry is longer than any that programs write: do not trust the archive, or unpack it yourself"
            )
          }
          last = try source.next()
          taken += Int64(last.count)
          allowance? -= Int64(last.count)
          block?.pointee = last.baseAddress
          return last.count
        } catch {
          failure = error
          return -1
        }
      }

      func seek(_ offset: Int64, _ origin: CInt) -> Int64 {
        guard let size = source.seekableByteCount else { return Int64(ARCHIVE_FATAL) }
        let base: Int64
        switch origin {
        case SEEK_SET: base = 0
        case SEEK_CUR: base = taken
        default: base = size
        }
        let (target, isTooFar) = base.addingReportingOverflow(offset)
        guard !isTooFar, target >= 0 else { return Int64(ARCHIVE_FATAL) }
        source.seek(to: target)
        taken = target
        return target
      }

      func endsWithZeros(after position: Int64) throws -> Bool {
        var rest = taken - position
        guard rest >= 0, rest <= last.count else { return false }
        if rest > 0, !last.suffix(Int(rest)).allSatisfy({ $0 == 0 }) { return false }
        repeat {
          try Task.checkCancellation()
          last = try source.next()
          rest = Int64(last.count)
          if !last.allSatisfy({ $0 == 0 }) { return false }
        } while rest > 0
        return true
      }
    }
  }
#endif
