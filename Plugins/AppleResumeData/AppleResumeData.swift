public import DownpipeCore
public import Foundation

/// The resume data of Apple's `URLSession`: what a download task leaves behind so that another one can go on.
///
/// A property list, in XML or binary, that later systems wrap in a keyed archive. It says where the bytes come from,
/// how many there are, in which file, and which ETag and date the server gave them. This type reads, changes and
/// writes it on every platform, and never makes an object of an archived class. It opens no file and no connection.
///
/// ```swift
/// var resumeData = try AppleResumeData(Data(contentsOf: file))
/// let checkpoint = try resumeData.checkpoint()      // bytes, file name, validator
/// let request = try resumeData.request()            // to go on with Downpipe, or:
/// try resumeData.refresh(url: freshLink)            // to go on with URLSession, from another link
/// try resumeData.data().write(to: file)
/// ```
///
/// The format is not documented by Apple; what is known comes from data that systems from iOS 8 on wrote. Keys that
/// are not known are kept. Resume data is hostile until proved otherwise: it may have 1 MiB, 64 levels and 50,000
/// values, and whatever is not as it must be is refused with the code `resumeData` and a message that says what.
public struct AppleResumeData: Sendable {
  /// The two forms of property lists.
  public enum Format: Hashable, Sendable {
    /// Text.
    case xml
    /// `bplist00`.
    case binary
  }

  /// The form that the data was read in; what ``data(format:archived:)`` writes unless told otherwise.
  public let format: Format
  /// Whether the list is wrapped in a keyed archive, as systems from iOS 12 on do.
  public let isArchived: Bool
  /// The layout's version: 1 names the file by its path, later ones by its name. Versions 1, 2 and 4 are in use.
  public let version: Int
  /// Where the bytes come from; always http or https.
  public internal(set) var url: URL
  /// How many bytes the file holds; never negative.
  public internal(set) var bytesReceived: Int64
  /// The name of the file that holds the bytes, without a folder: the folders of a system move. Never `.`, `..` or a
  /// path.
  public let fileName: String?

  /// Everything as plain values, keys that are not known among them.
  var info: [String: PropertyList]
  /// The archive that was read, with what has no plain value.
  let archive: KeyedArchive?
  /// The values as they were read from ``archive``.
  let archivedInfo: [String: PropertyList]
  /// Keys whose values only the archive can hold.
  let opaqueKeys: [String]
  var currentRequest: ArchivedRequest?
  var originalRequest: ArchivedRequest?

  /// Reads resume data.
  ///
  /// - Throws: ``DownloadError`` with the code `resumeData`, for anything that is no resume data, is damaged, or
  ///   holds a value that cannot be: a negative count, a URL that is not http or https, a file name that is a path.
  public init(_ data: Data) throws(DownloadError) {
    let (list, format) = try PropertyList.read(data)
    self.format = format
    if KeyedArchive.isArchive(list) {
      let archive = try KeyedArchive(list)
      self.archive = archive
      (info, opaqueKeys) = try Self.unwrap(archive)
    } else if let dictionary = list.dictionary {
      archive = nil
      info = dictionary
      opaqueKeys = []
    } else {
      throw .resumeData("it is \(list.kind), not a dictionary")
    }
    isArchived = archive != nil
    archivedInfo = info
    bytesReceived = try Self.bytesReceived(info)
    fileName = try Self.fileName(info)
    version = try Self.version(info)
    for key in [Key.entityTag, Key.byteRange] where info[key] != nil && info[key]?.string == nil {
      throw Self.unexpected(key, info[key])
    }
    currentRequest = try Self.request(info, Key.currentRequest)
    originalRequest = try Self.request(info, Key.originalRequest)
    if info[Key.url] == nil, let request = currentRequest ?? originalRequest {
      url = request.url
    } else {
      guard let text = info[Key.url]?.string, let url = URL(string: text) else {
        throw Self.unexpected(Key.url, info[Key.url])
      }
      self.url = try SafeURL.check(url)
    }
  }

  /// Makes resume data for a partial file that we hold.
  ///
  /// URLSession goes on only from data with an ETag or a date, and checks the file's size against `bytesReceived`.
  /// - Parameters:
  ///   - url: Where the bytes come from.
  ///   - bytesReceived: How many of them the file holds, from the first one on.
  ///   - entityTag: The server's ETag.
  ///   - lastModified: The server's Last-Modified.
  ///   - localFile: The file's name; for version 1, its absolute path.
  ///   - version: 1, 2 or 4.
  ///   - headers: What to send besides.
  ///   - format: The form to write.
  ///   - isArchived: Whether to wrap the list in a keyed archive, as systems from iOS 12 on do.
  /// - Throws: ``DownloadError`` with the code `resumeData` for a URL, a count, a name or a version that cannot be,
  ///   and `.invalidRequest` for malformed header fields and for more than 64 KiB of them.
  public init(
    url: URL, bytesReceived: Int64, entityTag: EntityTag? = nil, lastModified: Date? = nil, localFile: String,
    version: Int = 2, headers: HeaderFields = [], format: Format = .xml, isArchived: Bool = false
  ) throws(DownloadError) {
    self.url = try SafeURL.check(url)
    self.format = format
    self.isArchived = isArchived
    info = [
      Key.url: .string(url.absoluteString), Key.bytesReceived: .integer(Int128(bytesReceived)),
      Key.version: .integer(Int128(version)),
      version == 1 ? Key.localPath : Key.fileName: .string(localFile),
    ]
    info[Key.entityTag] = entityTag.map { .string($0.field) }
    info[Key.serverDate] = lastModified.map { .string(HTTPDate.string(from: $0)) }
    archive = nil
    archivedInfo = [:]
    opaqueKeys = []
    self.bytesReceived = try Self.bytesReceived(info)
    self.version = try Self.version(info)
    fileName = try Self.fileName(info)
    let headers = try Self.checked(headers)
    let form: ArchivedRequest.Form = isArchived ? .named : .numbered
    originalRequest = ArchivedRequest(url: url, headers: headers, form: form)
    currentRequest = originalRequest
    askForTheRest()
  }

  // MARK: - Reading

  private static func unwrap(
    _ archive: KeyedArchive
  ) throws(DownloadError) -> (info: [String: PropertyList], opaqueKeys: [String]) {
    guard let entries = try archive.entries(archive.root) else {
      throw .resumeData(
        "it is an archive of the class \(archive.rootClass?.prefix(64).escaped ?? "?"), not of a dictionary")
    }
    var info: [String: PropertyList] = [:]
    var opaqueKeys: [String] = []
    var budget = PropertyListBudget()
    for (key, reference) in entries {
      guard info[key] == nil else { throw .resumeData("it has the key \(key.prefix(64).escaped) twice") }
      switch try archive.decode(reference, depth: 0, &budget) {
      case .value(let value): info[key] = value
      case .null: break
      case .object(let name):
        guard !Key.all.contains(key) else {
          throw .resumeData("its \(key) is an object of the class \(name.prefix(64).escaped)")
        }
        opaqueKeys.append(key)
      }
    }
    return (info, opaqueKeys)
  }

  private static func bytesReceived(_ info: [String: PropertyList]) throws(DownloadError) -> Int64 {
    guard let number = info[Key.bytesReceived]?.integer, let count = Int64(exactly: number), count >= 0 else {
      throw unexpected(Key.bytesReceived, info[Key.bytesReceived])
    }
    return count
  }

  private static func version(_ info: [String: PropertyList]) throws(DownloadError) -> Int {
    guard let value = info[Key.version] else { return info[Key.fileName] == nil ? 1 : 2 }
    guard let number = value.integer, (1...4).contains(number) else { throw unexpected(Key.version, value) }
    return Int(number)
  }

  private static func fileName(_ info: [String: PropertyList]) throws(DownloadError) -> String? {
    var path: String?
    if let value = info[Key.localPath] {
      path = value.string
      guard let path, path.hasPrefix("/"), path.utf8.count <= 4096, !path.utf8.contains(0),
        !path.split(separator: "/").contains("..")
      else { throw unexpected(Key.localPath, value) }
    }
    guard let value = info[Key.fileName] else {
      guard let path else { return nil }
      guard let name = path.split(separator: "/").last, isFileName(name) else {
        throw unexpected(Key.localPath, info[Key.localPath])
      }
      return String(name)
    }
    guard let name = value.string, isFileName(name) else { throw unexpected(Key.fileName, value) }
    return name
  }

  private static func isFileName(_ name: some StringProtocol) -> Bool {
    !name.isEmpty && name != "." && name != ".." && name.utf8.count <= 255
      && name.unicodeScalars.allSatisfy { $0 != "/" && $0 != "\\" && $0.value >= 0x20 && $0.value != 0x7F }
  }

  private static func request(
    _ info: [String: PropertyList], _ key: String
  ) throws(DownloadError) -> ArchivedRequest? {
    guard let value = info[key] else { return nil }
    guard let data = value.data else { throw unexpected(key, value) }
    return try ArchivedRequest(data)
  }

  /// The error for a value that is missing or cannot be.
  static func unexpected(_ key: String, _ value: PropertyList?) -> DownloadError {
    guard let value else { return .resumeData("it has no \(key)") }
    let shown =
      switch value {
      // URLs may hold secrets.
      case .string(let text) where key != Key.url: "“\(text.prefix(100).escaped)”"
      case .integer(let number): "\(number)"
      default: value.kind
      }
    return .resumeData("its \(key) cannot be \(shown)")
  }
}

extension DownloadError.Code {
  /// Resume data of URLSession is damaged, or says what cannot be.
  public static let resumeData = DownloadError.Code("resumeData")
}
