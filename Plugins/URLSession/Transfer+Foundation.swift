package import DownpipeCore

#if canImport(FoundationNetworking)
  import Foundation
  package import FoundationNetworking
#else
  package import Foundation
#endif

extension HeaderFields {
  /// The fields of a response. Foundation has joined fields of the same name with commas.
  package init(_ response: HTTPURLResponse) {
    var fields: [HeaderField] = []
    for (name, value) in response.allHeaderFields {
      if let name = name as? String, let value = value as? String { fields.append(HeaderField(name, value)) }
    }
    // A dictionary has no stable order; sorting makes the reply reproducible.
    self.init(fields.sorted { ($0.name, $0.value) < ($1.name, $1.value) })
  }
}

extension HeaderFields {
  /// The fields with one character an octet in each `Location`, as `Redirects` expects them.
  var withOctetsOfLocation: HeaderFields {
    #if canImport(FoundationNetworking)
      // Foundation on Linux decodes fields as UTF-8; Apple's decodes them as Latin-1.
      guard values("Location").contains(where: { $0.utf8.contains { $0 >= 0x80 } }) else { return self }
      return HeaderFields(
        fields.map { field in
          guard field.name.caseInsensitivelyEquals("Location") else { return field }
          return HeaderField(field.name, String(decoding: field.value.utf8.map(UInt16.init), as: UTF16.self))
        })
    #else
      return self
    #endif
  }
}

extension DownloadError {
  /// The error for what Foundation reports about a failed task.
  package init(transport error: any Error) {
    let error = error as NSError
    let numbers = [EMFILE, ENFILE].map { Int($0) }
    let causes = [error, error.userInfo[NSUnderlyingErrorKey] as? NSError].compactMap { $0 }
    // On Linux libcurl's message is the only information.
    if causes.contains(where: { $0.domain == NSPOSIXErrorDomain && numbers.contains($0.code) })
      || error.localizedDescription.lowercased().contains("too many open files")
    {
      self.init(
        .tooManyOpenFiles,
        "no connection could be opened: too many files and connections are open; run fewer downloads at once, or raise "
          + "the limit (ulimit -n)", cause: error)
      return
    }
    guard error.domain == NSURLErrorDomain else {
      self.init(.network, error.localizedDescription, cause: error)
      return
    }
    let text = error.localizedDescription
    var code = Self.codes.first { $0.key.rawValue == error.code }?.value ?? Self.code(ofUnnamed: text)
    // libcurl reports “unsupported protocol” for malformed responses too; the scheme of the URL was checked before.
    if code == .unsupportedURL, Self.code(ofUnnamed: text) == .invalidResponse { code = .invalidResponse }
    if text.contains("given a bad argument") {
      // libcurl's text would blame the caller.
      self.init(
        .invalidResponse,
        "a line in the header of the response is malformed, such as one that begins with a blank and continues no field; "
          + "ask the operator of the server", cause: error)
      return
    }
    self.init(code, "\(text.redactingURLs.prefix(500)) (URLError \(error.code))", cause: error)
  }

  /// Codes that are not listed here map to `.network`.
  private static let codes: [URLError.Code: Code] = [
    .timedOut: .timedOut,
    .cannotFindHost: .hostNotFound,
    .dnsLookupFailed: .hostNotFound,
    .cannotConnectToHost: .network,
    .networkConnectionLost: .network,
    .notConnectedToInternet: .offline,
    .dataNotAllowed: .offline,
    .internationalRoamingOff: .offline,
    .callIsActive: .offline,
    .resourceUnavailable: .network,
    // On Linux this is a connection closed without a response, which another attempt may survive.
    .badServerResponse: .network,
    .secureConnectionFailed: .tls,
    .serverCertificateHasBadDate: .tls,
    .serverCertificateUntrusted: .tls,
    .serverCertificateHasUnknownRoot: .tls,
    .serverCertificateNotYetValid: .tls,
    .clientCertificateRejected: .tls,
    .clientCertificateRequired: .tls,
    .appTransportSecurityRequiresSecureConnection: .tls,
    .httpTooManyRedirects: .tooManyRedirects,
    .redirectToNonExistentLocation: .invalidResponse,
    .cannotParseResponse: .invalidResponse,
    .cannotDecodeContentData: .invalidResponse,
    .cannotDecodeRawData: .invalidResponse,
    .zeroByteResource: .invalidResponse,
    .dataLengthExceedsMaximum: .tooLarge,
    .badURL: .unsupportedURL,
    .unsupportedURL: .unsupportedURL,
    .cancelled: .cancelled,
  ]

  /// On Linux most failures of libcurl arrive as “unknown”; only the text of libcurl-errors(3) distinguishes them.
  private static func code(ofUnnamed text: String) -> Code {
    let lower = text.lowercased()
    if ["ssl", "certificate", "tls"].contains(where: lower.contains) { return .tls }
    let broken = [
      "http/0.9", "response code", "weird server reply", "content or transfer-encoding", "content encoding",
      "failed writing", "failure writing", "bad chunk", "chunk hex-length", "invalid content-length", "header",
      "unsupported http",
      "illegal or missing", "malformed", "nul byte",
    ]
    return broken.contains(where: lower.contains) ? .invalidResponse : .network
  }
}

extension Result {
  var failure: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }
}

extension Data {
  func forEachRegion(_ sink: ChunkSink) throws {
    for region in regions {
      try region.withUnsafeBytes { bytes in
        if !bytes.isEmpty { try sink(RawSpan(_unsafeBytes: bytes)) }
      }
    }
  }
}
