extension FailureTable {
  /// The default table of ``Retry``, with a row for every ``DownloadError/Code`` and every HTTP status registered with
  /// IANA (RFC 9110 and its successors).
  ///
  /// A restart discards bytes, so it is used only if the stored bytes are proved wrong. A file that is proved wrong twice
  /// in a row, by its digest or by its decoding, fails the download: it is then most likely wrong on the server.
  public static let standard = FailureTable(
    codes + informational + successful + redirections + clientErrors + serverErrors + [
      Row(.other, .giveUp, because: "an unknown failure is not repeated: add a row for its code")
    ])

  private static let codes: [Row] = [
    Row(.scope(.machine), .giveBack, because: "another machine may do it, or this one once it is mended"),
    Row(.code(.network), .resume, because: "connections come back"),
    Row(.code(.offline), .waitForNetwork, because: "no attempt can succeed without a network"),
    Row(.code(.hostNotFound), .resume, because: "name servers fail for a while, and networks change"),
    Row(.code(.tls), .giveUp, because: "a refused certificate stays refused"),
    Row(.code(.timedOut), .resume, because: "a slow server or network may recover"),
    Row(.code(.httpStatus), .giveUp, because: "a status without a row of its own"),
    Row(.code(.fileNotFound), .giveUp, because: "the file does not exist"),
    Row(
      .code(.invalidResponse), .resume, because: "often the fault of a single proxy or connection, so one retry",
      attempts: 2),
    Row(.code(.tooManyRedirects), .giveUp, because: "the same request leads into the same loop"),
    Row(.code(.insecureRedirect), .giveUp, because: "the server redirects to http every time"),
    Row(.code(.privateAddress), .giveUp, because: "the source blocks the address every time"),
    Row(.code(.contentChanged), .refresh, because: "the link may have expired; a restart by hand takes the new thing"),
    Row(.code(.sizeChanged), .refresh, because: "the link may have expired; a restart by hand takes the new thing"),
    Row(.code(.unproven), .resume, because: "the next attempt compares the bytes on disk with the whole file"),
    Row(.code(.wrongRange), .resume, because: "the next attempt requests the whole file to compare it"),
    Row(.code(.wrongRangeEnd), .resume, because: "the next attempt requests the whole file to compare it"),
    Row(.code(.unreadableRange), .resume, because: "the next attempt requests the whole file to compare it"),
    Row(.code(.multipartRange), .resume, because: "the next attempt requests the whole file to compare it"),
    Row(.code(.rangeIgnored), .resume, because: "the whole file is compared with the bytes on disk"),
    Row(.code(.rangeRefused), .resume, because: "the whole file is compared with the bytes on disk"),
    Row(
      .code(.rangeNotSatisfiable), .resume, because: "the next attempt requests the whole file to compare it"),
    Row(
      .code(.wrongContentCoding), .resume, because: "the next attempt requests the whole file to compare it"),
    Row(.code(.linkExpired), .refresh, because: "a fresh link is needed"),
    Row(.code(.lengthMismatch), .resume, because: "the connection ended early; the received bytes are good"),
    Row(
      .code(.digestMismatch), .restart, because: "bytes were damaged on the way; if it occurs twice, on the server",
      attempts: 2),
    Row(
      .code(.pieceMismatch), .resume,
      because: "the right pieces are kept; if it occurs twice, the server has the wrong ones",
      attempts: 2),
    Row(
      .code(.damaged), .restart, because: "bytes were damaged on the way; if it occurs twice, on the server",
      attempts: 2),
    Row(.code(.noSpace), .waitForDisk, because: "space must be freed; the received bytes are kept"),
    Row(.code(.tooManyOpenFiles), .waitForDescriptors, because: "other downloads release descriptors when they end"),
    Row(.code(.inUse), .waitForOwner, because: "the owner of the partial will release it"),
    Row(.code(.permission), .giveUp, because: "access must be granted"),
    Row(.code(.storage), .giveUp, because: "a failing disk must be checked"),
    Row(.code(.alreadyExists), .giveUp, because: "the existing file is kept"),
    Row(.code(.unsafePath), .giveUp, because: "the path stays unsafe"),
    Row(.code(.tooLarge), .giveUp, because: "the file stays too large"),
    Row(.code(.unsupportedURL), .giveUp, because: "no source accepts the URL"),
    Row(.code(.invalidRequest), .giveUp, because: "the request itself is wrong"),
    Row(.code(.invalidPipeline), .giveUp, because: "the pipeline itself is wrong"),
    Row(.code(.processing), .giveUp, because: "a step has the same result with the same bytes"),
    Row(.code(.ledger), .resume, because: "a database or disk that was away may be back; the received bytes are good"),
    Row(.code(.cancelled), .giveUp, because: "it was requested"),
    Row(.code(.removed), .giveUp, because: "it was requested"),
    Row(.code(.shutDown), .giveUp, because: "the downloader was shut down"),
    Row(.code(.notOwner), .giveUp, because: "another owner works on it"),
  ]

  private static func row(
    _ status: Int, _ action: Action, _ name: String, _ reason: String, attempts: Int? = nil
  ) -> Row {
    Row(.httpStatus(status), action, because: "\(name): \(reason)", attempts: attempts)
  }

  private static let informational: [Row] = [
    row(100, .giveUp, "Continue", "an interim response cannot be the last one"),
    row(101, .giveUp, "Switching Protocols", "no other protocol was requested"),
    row(102, .giveUp, "Processing", "an interim response cannot be the last one"),
    row(103, .giveUp, "Early Hints", "an interim response cannot be the last one"),
    row(104, .giveUp, "Upload Resumption Supported", "an interim response to an upload"),
    Row(.httpStatusClass(1), .giveUp, because: "an interim response cannot be the last one"),
  ]

  private static let successful: [Row] = [
    row(200, .giveUp, "OK", "a whole file that could not be used"),
    row(201, .giveUp, "Created", "the request was not to create anything"),
    row(202, .resume, "Accepted", "the server is still preparing the file"),
    row(203, .giveUp, "Non-Authoritative Information", "a proxy has changed the bytes"),
    row(204, .giveUp, "No Content", "there is no file"),
    row(205, .giveUp, "Reset Content", "there is no file"),
    row(206, .restart, "Partial Content", "a part whose range cannot be determined"),
    row(207, .giveUp, "Multi-Status", "a WebDAV listing is no file"),
    row(208, .giveUp, "Already Reported", "a WebDAV listing is no file"),
    row(226, .giveUp, "IM Used", "no delta was requested"),
    Row(.httpStatusClass(2), .giveUp, because: "a success without a file"),
  ]

  private static let redirections: [Row] = [
    row(300, .giveUp, "Multiple Choices", "a choice is needed"),
    row(301, .giveUp, "Moved Permanently", "the redirect could not be followed"),
    row(302, .giveUp, "Found", "the redirect could not be followed"),
    row(303, .giveUp, "See Other", "the redirect could not be followed"),
    row(304, .giveUp, "Not Modified", "the server has nothing newer to send"),
    row(305, .giveUp, "Use Proxy", "a server may not choose the proxy"),
    row(306, .giveUp, "(Unused)", "the status has no meaning"),
    row(307, .giveUp, "Temporary Redirect", "the redirect could not be followed"),
    row(308, .giveUp, "Permanent Redirect", "the redirect could not be followed"),
    Row(.httpStatusClass(3), .giveUp, because: "the redirect could not be followed"),
  ]

  private static let clientErrors: [Row] = [
    row(400, .giveUp, "Bad Request", "the same request gets the same response"),
    row(401, .refresh, "Unauthorized", "credentials are missing, wrong, or have expired"),
    row(402, .giveUp, "Payment Required", "a payment is needed"),
    row(403, .refresh, "Forbidden", "access is refused, or the link has expired"),
    row(404, .giveUp, "Not Found", "the file does not exist"),
    row(405, .giveUp, "Method Not Allowed", "the URL cannot be read"),
    row(406, .giveUp, "Not Acceptable", "the server has no acceptable form"),
    row(407, .giveUp, "Proxy Authentication Required", "the proxy requires credentials"),
    row(408, .resume, "Request Timeout", "the server stopped waiting for the request"),
    row(409, .giveUp, "Conflict", "the conflict must be resolved"),
    row(410, .refresh, "Gone", "the file will not come back under this link"),
    row(411, .giveUp, "Length Required", "the same request gets the same response"),
    row(412, .giveUp, "Precondition Failed", "a condition of the request is not met"),
    row(413, .giveUp, "Content Too Large", "the same request gets the same response"),
    row(414, .giveUp, "URI Too Long", "the same request gets the same response"),
    row(415, .giveUp, "Unsupported Media Type", "the same request gets the same response"),
    row(416, .giveUp, "Range Not Satisfiable", "a range was refused although none was requested"),
    row(417, .giveUp, "Expectation Failed", "the same request gets the same response"),
    row(418, .giveUp, "(Unused)", "the server refuses the request"),
    row(421, .resume, "Misdirected Request", "another connection may reach the right server"),
    row(422, .giveUp, "Unprocessable Content", "the same request gets the same response"),
    row(423, .resume, "Locked", "locks are temporary"),
    row(424, .giveUp, "Failed Dependency", "the same request gets the same response"),
    row(425, .resume, "Too Early", "the request is accepted once the handshake is complete"),
    row(426, .giveUp, "Upgrade Required", "the server requires another protocol"),
    row(428, .giveUp, "Precondition Required", "the same request gets the same response"),
    row(429, .resume, "Too Many Requests", "the server asks for fewer requests"),
    row(431, .giveUp, "Request Header Fields Too Large", "the same request gets the same response"),
    row(451, .giveUp, "Unavailable For Legal Reasons", "the legal reason remains"),
    Row(.httpStatusClass(4), .giveUp, because: "the server rejects the request"),
  ]

  private static let serverErrors: [Row] = [
    row(500, .resume, "Internal Server Error", "the error may be temporary"),
    row(501, .giveUp, "Not Implemented", "the server cannot do it"),
    row(502, .resume, "Bad Gateway", "the upstream server may recover"),
    row(503, .resume, "Service Unavailable", "the overload or maintenance is temporary"),
    row(504, .resume, "Gateway Timeout", "the upstream server may recover"),
    row(505, .giveUp, "HTTP Version Not Supported", "the server cannot do it"),
    row(506, .giveUp, "Variant Also Negotiates", "the server is misconfigured"),
    row(507, .giveUp, "Insufficient Storage", "RFC 4918 §11.5 forbids an automatic repetition"),
    row(508, .giveUp, "Loop Detected", "the server is misconfigured"),
    row(510, .giveUp, "Not Extended", "the server requires an obsolete extension"),
    row(511, .giveUp, "Network Authentication Required", "the network requires a log-in"),
    Row(.httpStatusClass(5), .resume, because: "an error of the server may be temporary"),
  ]
}
