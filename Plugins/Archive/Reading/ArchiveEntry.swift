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

  /// What the header of an entry says. All of it is untrusted.
  struct ArchiveEntry {
    enum Kind: Hashable {
      case file
      case folder
      case symbolicLink(to: String)
      case hardLink(to: String)
      /// A device, a FIFO or a socket.
      case special
    }

    struct Attributes {
      var permissions: UInt32
      var owner: (user: Int64, group: Int64)
      /// In seconds since 1970, and nanoseconds.
      var modified: (seconds: Int64, nanoseconds: Int64)?
    }

    var name: String
    var kind: Kind
    /// The declared number of bytes, if there is one.
    var size: Int64?
    var attributes: Attributes
    var isEncrypted: Bool

    /// The values of libarchive's entry.
    ///
    /// - Throws: `DownloadError` with `.damaged` for a name that cannot be read.
    init(_ raw: OpaquePointer, format: ArchiveFormat) throws(DownloadError) {
      func text(_ bytes: UnsafePointer<CChar>?) -> String? {
        bytes.map { StoredName.decode(UnsafeBufferPointer(start: $0, count: strlen($0)), format) }
      }
      guard let name = text(archive_entry_pathname(raw)) else {
        throw DownloadError(.damaged, "an entry of the archive has no name that can be read")
      }
      self.name = name
      if let target = text(archive_entry_hardlink(raw)) {
        kind = .hardLink(to: target)
      } else {
        switch archive_entry_filetype(raw) & 0o170000 {
        case 0o100000: kind = .file
        case 0o040000: kind = .folder
        case 0o120000:
          guard let target = text(archive_entry_symlink(raw)) else {
            throw DownloadError(.damaged, "the link \(shown(name)) of the archive has no target that can be read")
          }
          kind = .symbolicLink(to: target)
        // A tar of the first kind has no types: a name that ends with a slash is a folder, everything else a file.
        case 0: kind = name.utf8.last == UInt8(ascii: "/") ? .folder : .file
        default: kind = .special
        }
      }
      size = archive_entry_size_is_set(raw) != 0 ? archive_entry_size(raw) : nil
      attributes = Attributes(
        permissions: UInt32(archive_entry_perm(raw)) & 0o777,
        owner: (archive_entry_uid(raw), archive_entry_gid(raw)),
        modified: archive_entry_mtime_is_set(raw) != 0
          ? (Int64(archive_entry_mtime(raw)), Int64(archive_entry_mtime_nsec(raw))) : nil)
      isEncrypted = archive_entry_is_encrypted(raw) != 0
    }
  }

  /// Names that are stored as bytes.
  enum StoredName {
    /// The upper half of code page 437, which zip files use for names without the flag for UTF-8 (APPNOTE §D.1).
    private static let codePage437 = Array(
      ("ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
        + "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}").unicodeScalars)

    /// The text of a name: UTF-8 where the bytes are UTF-8, otherwise code page 437 in zip files and ISO 8859-1 in
    /// others.
    ///
    /// File systems of Macs, and Swift's file functions, take no other bytes.
    static func decode(_ bytes: some Collection<CChar>, _ format: ArchiveFormat) -> String {
      let octets = bytes.map { UInt8(bitPattern: $0) }
      if let text = String(validating: octets, as: UTF8.self) { return text }
      let scalars = octets.map { octet in
        octet < 0x80 || format != .zip ? Unicode.Scalar(octet) : codePage437[Int(octet) - 0x80]
      }
      return String(String.UnicodeScalarView(scalars))
    }
  }
#endif
