public import DownpipeCore
public import Foundation

/// The resume data of Apple's `URLSession`: what a download task returns when it is cancelled, so that another task can
/// resume.
///
/// It is a property list, in XML or binary, which later systems wrap in a keyed archive. It contains the URL, the
/// number of bytes received, the name of the partial file, and the server's ETag and date. This type reads, changes and
/// writes it on every platform. It never instantiates an archived class and opens no file and no connection.
///
/// - Experimental: That URLSession accepts what this type writes **has not been tried on Apple's systems**.
///
/// ```swift
/// var resumeData = try AppleResumeData(Data(contentsOf: file))
/// let checkpoint = try resumeData.checkpoint()      // bytes, file name, validator
/// let request = try resumeData.request()            // to resume with Downpipe, or:
/// try resumeData.refresh(url: freshLink)            // to resume with URLSession, from another link
/// try resumeData.data().write(to: file)
/// ```
///
/// Apple does not document the format; this type is based on data that iOS 8 and later have written. Unknown keys are
/// preserved. Resume data is untrusted input: at most 1 MiB, 64 levels and 50,000 values are read, and invalid data is
/// rejected with the code `resumeData` and a message that names the problem.
public struct AppleResumeData: Sendable {
  /// The format of the property list.
  public enum Format: Hashable, Sendable {
    /// XML text.
    case xml
    /// Apple's binary format, `bplist00`.
    case binary
  }

  /// The format that the data was read in, and the default of ``data(format:archived:)``.
  public let format: Format
  /// Whether the list is wrapped in a keyed archive, as iOS 12 and later do.
  public let isArchived: Bool
  /// The version of the layout: version 1 contains the path of the partial file, later versions its name. Versions 1, 2
  /// and 4 are in use.
  public let version: Int
  /// The URL of the file; always http or https.
  public internal(set) var url: URL
  /// The number of bytes in the partial file; never negative.
  public internal(set) var bytesReceived: Int64
  /// The name of the partial file without its folder, which can change between launches; never `.`, `..` or a path.
  /// `nil` when the data has none.
  public let fileName: String?

  /// All values, including those of unknown keys.
  var info: [String: PropertyList]
  /// The archive that was read, with the objects that have no property list value.
  let archive: KeyedArchive?
  /// The values as they were read from ``archive``.
  let archivedInfo: [String: PropertyList]
  /// Keys whose values have no property list value.
  let opaqueKeys: [String]
  var currentRequest: ArchivedRequest?
  var originalRequest: ArchivedRequest?

  /// Reads resume data.
  ///
  /// - Throws: `DownloadError` with the code `resumeData` when the data is not resume data, is damaged or has an
  ///   invalid value, such as a negative count, a URL that is not http or https, or a file name that is a path.
  public init(_ data: Data) throws(DownloadError) {
    let (list, format) = try DownloadError.convert { () throws(PropertyListError) in try PropertyList.read(data) }
    self.format = format == .xml ? .xml : .binary
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

  /// Makes resume data for a partial file.
  ///
  /// URLSession resumes only from data with an ETag or a date, and compares the size of the file with `bytesReceived`.
  /// - Parameters:
  ///   - url: The URL of the file.
  ///   - bytesReceived: The number of bytes in the partial file, which starts with the first byte of the file.
  ///   - entityTag: The server's ETag.
  ///   - lastModified: The server's Last-Modified.
  ///   - localFile: The name of the partial file; for version 1, its absolute path.
  ///   - version: The version of the layout: 1, 2 or 4.
  ///   - headers: The header fields of the request.
  ///   - format: The default format of ``data(format:archived:)``.
  ///   - isArchived: Whether to wrap the list in a keyed archive, as iOS 12 and later do.
  /// - Throws: `DownloadError` with the code `resumeData` for an invalid URL, count, name or version, and
  ///   `.invalidRequest` for malformed header fields and for more than 64 KiB of them.
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
      guard info[key] == nil else { throw .resumeData("its key \(key.prefix(64).escaped) is duplicated") }
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

  /// The error for a missing or invalid value.
  static func unexpected(_ key: String, _ value: PropertyList?) -> DownloadError {
    guard let value else { return .resumeData("it has no \(key)") }
    let shown =
      switch value {
      // URLs may contain secrets.
      case .string(let text) where key != Key.url: "“\(text.prefix(100).escaped)”"
      case .integer(let number): "\(number)"
      default: value.kind
      }
    return .resumeData("its \(key) is invalid: \(shown)")
  }
}
