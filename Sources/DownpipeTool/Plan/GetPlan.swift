import Downpipe
import DownpipeMetalink
import Foundation

/// The downloads of `downpipe get`, with every option checked.
struct GetPlan: Sendable {
  var urls: [String]
  /// The file with more URLs; `-` is standard input.
  var inputFile: String?
  /// The name of the file, for one URL.
  var outputName: String?
  /// Other URLs of the file, for one URL.
  var mirrors: [String] = []
  var headers = HeaderFields()
  /// The names of header fields that were given and are not sent.
  private(set) var ignoredFields: [String] = []
  /// The digest that the file must have, for one URL.
  var digest: FileDigest?
  var steps = RequestSteps()
  var priority = Priority.normal
  /// Whether the servers of finished files are asked about them.
  var refresh = DownloadRequest.Refresh.never
  /// Whether the command was given a name or a token to log in with.
  var logsIn = false
  /// The local checksum file that has the digests of the files.
  var checksums: LocalChecksums?
  /// Whether the URLs are those of Metalink documents, or paths.
  var isMetalink = false
  /// Whether the URLs are from strangers.
  var isUntrusted = false

  /// Whether the command is about one file.
  var isSingle: Bool { inputFile == nil && urls.count == 1 }

  /// - Parameters:
  ///   - header: Fields such as `Accept: text/html`.
  ///   - userAgent: The field `User-Agent`.
  ///   - referer: The field `Referer`.
  ///   - checksum: A digest such as `sha256=…`.
  ///   - mirrors: Other URLs of the file.
  ///   - isMetalink: Whether the URLs are those of Metalink documents.
  init(
    urls: [String], inputFile: String? = nil, outputName: String? = nil, header: [String] = [],
    userAgent: String? = nil, referer: String? = nil, checksum: String? = nil, mirrors: [String] = [],
    steps: RequestSteps = RequestSteps(), priority: Priority = .normal,
    refresh: DownloadRequest.Refresh = .never, isMetalink: Bool = false
  ) throws(UsageError) {
    self.urls = urls
    self.isMetalink = isMetalink
    self.inputFile = inputFile
    self.steps = steps
    self.priority = priority
    self.refresh = refresh
    guard !urls.isEmpty || inputFile != nil else {
      throw UsageError("no URL given: add one, or a file of URLs with --input-file")
    }
    let given = [("--output", outputName != nil), ("--checksum", checksum != nil), ("--mirror", !mirrors.isEmpty)]
    if isMetalink, let option = given.first(where: { $0.1 })?.0 {
      throw UsageError("\(option) and --metalink exclude each other: the document says what each file is")
    }
    if let outputName {
      guard isSingle else { throw UsageError("--output works with one URL only: it is the name of one file") }
      try Self.check(name: outputName)
      self.outputName = outputName
    }
    for text in header { headers.fields.append(try Self.field(text)) }
    for (option, name, value) in [("--user-agent", "User-Agent", userAgent), ("--referer", "Referer", referer)] {
      guard let value else { continue }
      guard headers[name] == nil else {
        throw UsageError("\(option) and --header both set \(name): remove one of them")
      }
      headers.fields.append(try Self.field(name, value, option: option))
    }
    ignoredFields = headers.fields.map(\.name).filter(HTTPRequestFields.isOfTheConnection)
    headers.fields.removeAll { HTTPRequestFields.isOfTheConnection($0.name) }
    if let checksum {
      guard isSingle else { throw UsageError("--checksum works with one URL only: it is the digest of one file") }
      do { digest = try FileDigest(parsing: checksum) } catch { throw UsageError("--checksum: \(error.message)") }
    }
    if !mirrors.isEmpty {
      guard isSingle else { throw UsageError("--mirror works with one URL only: it is another URL of the same file") }
      for text in mirrors {
        do { _ = try Self.url(text) } catch {
          throw UsageError("--mirror \(text.redactedURL.prefix(200)): \(error.message)")
        }
      }
      self.mirrors = mirrors
    }
  }

  /// Returns the request for a URL as it was typed, or for a line of a list; see ``URLLine``.
  ///
  /// - Throws: ``DownloadError`` with `.unsupportedURL` or `.invalidRequest` for a URL that cannot be used.
  func request(for text: String) throws(DownloadError) -> DownloadRequest {
    let line = URLLine(text)
    var request = DownloadRequest(try Self.url(line.url), id: id(for: text))
    for text in mirrors + line.mirrors {
      do {
        let mirror = try Self.url(text)
        if mirror != request.url, !request.mirrors.contains(mirror) { request.mirrors.append(mirror) }
      } catch {
        throw DownloadError(error.code, "its mirror \(text.redactedURL.prefix(200)): \(error.message)")
      }
    }
    request.headers = headers
    request.priority = priority
    request.refresh = refresh
    request.destination.name = outputName
    if let digest { request.expectedDigests = [digest] }
    request.givenURL = line.url
    request.logsIn = logsIn
    request.isUntrusted = isUntrusted
    steps.attach(to: &request)
    try checksums?.attach(to: &request, for: CompanionFile.fileName(of: request.url))
    return request
  }

  /// Returns the requests for the files of a Metalink document.
  ///
  /// - Parameters:
  ///   - text: The URL of the document as it was typed, or its absolute path.
  ///   - url: Where it came from; `nil` for a local file.
  ///   - notify: Gets the name of each file whose hashes cannot be checked, and why.
  ///   - skip: Gets each file that is left out.
  func requests(
    of document: MetalinkDocument, _ text: String, from url: URL?,
    noticing notify: (_ file: String, _ reason: String) -> Void,
    skipping skip: (MetalinkDocument.SkippedFile) -> Void
  ) throws -> [DownloadRequest] {
    func change(_ request: inout DownloadRequest, _ file: MetalinkDocument.File) throws {
      request.id = DownloadIdentity(document: text, file: file.name).id
      // The others are for the server of the document.
      request.headers = headers.forEverybody
      request.priority = priority
      request.refresh = refresh
      request.isUntrusted = isUntrusted
      // The document names what is downloaded, which a step may unpack.
      if steps.gunzips || steps.strippedComponents != nil { request.destination.nameUse = .fallback }
      steps.attach(to: &request)
      try checksums?.attach(to: &request, for: file.name.split(separator: "/").last.map(String.init))
      if checksums == nil, steps.checksumFile == nil, let reason = file.unverifiableReason { notify(file.name, reason) }
    }
    return try withoutActuallyEscaping(skip) { try document.requests(from: url, changing: change, skipping: $0) }
  }

  func id(for text: String) -> DownloadID { DownloadIdentity(url: URLLine(text).url, outputName: outputName).id }

  static func url(_ text: String) throws(DownloadError) -> URL {
    let url = try DownloadRequest(text, id: "").url
    let parts = URLText(url)
    let scheme = parts.scheme.lowercased()
    guard PipelineSettings.schemes.contains(scheme) else {
      throw DownloadError(
        .unsupportedURL,
        "the scheme “\(scheme.prefix(32))” is not supported: use a URL with \(PipelineSettings.schemes.joined(separator: ", "))"
      )
    }
    guard parts.host?.isEmpty == false else {
      throw DownloadError(.unsupportedURL, "the URL has no host: write it as \(scheme)://host/path")
    }
    return url
  }

  private static func check(name: String) throws(UsageError) {
    guard !name.contains("/"), !name.contains("\0") else {
      throw UsageError("--output takes a name and not a path: choose the folder with --directory")
    }
    guard !name.isEmpty, name != ".", name != ".." else { throw UsageError("--output: “\(name)” is not a file name") }
    guard name.utf8.count <= 255 else { throw UsageError("--output: the name is longer than 255 bytes") }
    guard name.lowercased() != ".downpipe" else {
      throw UsageError("--output: “.downpipe” is the folder of the ledger: choose another name")
    }
  }

  private static func field(_ text: String) throws(UsageError) -> HeaderField {
    guard let colon = text.firstIndex(of: ":") else {
      throw UsageError("--header “\(text.prefix(80))” has no colon: write it as 'Name: value'")
    }
    let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
    let name = String(text[..<colon])
    return try field(name, String(value), option: "--header “\(name.prefix(80))”")
  }

  /// Messages never repeat the value: it may be a secret.
  private static func field(_ name: String, _ value: String, option: String) throws(UsageError) -> HeaderField {
    let field = HeaderField(name, value)
    guard field.isValid else {
      throw UsageError("\(option) is not a valid field: a name has no spaces, and a value no line breaks")
    }
    return field
  }
}

extension GetPlan: CustomStringConvertible {
  /// The URLs without secrets, and no header fields.
  var description: String { (urls.map(\.redactedURL) + [inputFile].compactMap(\.self)).joined(separator: " ") }
}
