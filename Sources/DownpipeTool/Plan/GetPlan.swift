import Downpipe
import Foundation

/// What `downpipe get` is to do: every option checked, nothing begun.
struct GetPlan: Sendable {
  /// The URLs given as arguments.
  var urls: [String]
  /// The file with more of them; `-` is standard input.
  var inputFile: String?
  /// The name of the one file.
  var outputName: String?
  /// Header fields to send.
  var headers = HeaderFields()
  /// The digest that the one file must have.
  var digest: FileDigest?
  /// What is done afterwards.
  var wishes = RequestWishes()

  /// Whether only one file can be meant.
  var isSingle: Bool { inputFile == nil && urls.count == 1 }

  /// Checks what was typed.
  ///
  /// - Parameters:
  ///   - header: fields such as `Accept: text/html`.
  ///   - checksum: a digest such as `sha256=…`.
  init(
    urls: [String], inputFile: String? = nil, outputName: String? = nil, header: [String] = [],
    checksum: String? = nil, wishes: RequestWishes = RequestWishes()
  ) throws(UsageError) {
    self.urls = urls
    self.inputFile = inputFile
    self.wishes = wishes
    guard !urls.isEmpty || inputFile != nil else {
      throw UsageError("no URL given: name one, or a file of them with --input-file")
    }
    if let outputName {
      guard isSingle else { throw UsageError("--output names one file: it goes with one URL") }
      try Self.check(name: outputName)
      self.outputName = outputName
    }
    for text in header { headers.fields.append(try Self.field(text)) }
    if let checksum {
      guard isSingle else { throw UsageError("--checksum belongs to one file: it goes with one URL") }
      do { digest = try FileDigest(parsing: checksum) } catch { throw UsageError("--checksum: \(error.message)") }
    }
  }

  /// The request for a URL as it was typed.
  ///
  /// - Throws: ``DownloadError`` with `.unsupportedURL` or `.invalidRequest` for one that cannot be used.
  func request(for text: String) throws(DownloadError) -> DownloadRequest {
    guard text.utf8.count <= 8192 else {
      throw DownloadError(.invalidRequest, "the URL is longer than 8,192 bytes")
    }
    let id = DownloadIdentity(url: text, outputName: outputName).id
    var request = try DownloadRequest(text, id: id)
    guard Self.isHTTP(text) else {
      let scheme = request.url.scheme ?? ""
      throw DownloadError(
        .unsupportedURL, "“\(scheme.prefix(32)):” cannot be downloaded: the URL must begin with https:// or http://")
    }
    guard !(request.url.host(percentEncoded: true) ?? "").isEmpty else {
      throw DownloadError(.unsupportedURL, "the URL names no host: write it as https://host/path")
    }
    request.headers = headers
    request.destination.name = outputName
    if let digest { request.expectedDigests = [digest] }
    request.givenURL = text
    wishes.attach(to: &request)
    return request
  }

  /// Whether the text begins as the URLs of this tool's sources do.
  private static func isHTTP(_ text: String) -> Bool {
    let start = text.prefix(8).lowercased()
    return start.hasPrefix("http://") || start == "https://"
  }

  private static func check(name: String) throws(UsageError) {
    guard !name.contains("/"), !name.contains("\0") else {
      throw UsageError("--output takes a name and not a path: choose the folder with --directory")
    }
    guard !name.isEmpty, name != ".", name != ".." else { throw UsageError("--output: “\(name)” is no file name") }
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
    let field = HeaderField(String(text[..<colon]), String(value))
    guard field.isValid else {
      // The value may be a secret, so that only the name is repeated.
      throw UsageError(
        "--header “\(field.name.prefix(80))” is not allowed: a name has no spaces, and a value no line breaks")
    }
    return field
  }
}
