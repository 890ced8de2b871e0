extension FailureTable {
  /// The table that ``Retry`` uses: every ``DownloadError/Code`` and every status registered with IANA
  /// (as of RFC 9110 and what followed it) has a row.
  ///
  /// Restarting throws bytes away, so it is done only where the bytes on disk are of no more use. A digest
  /// that is wrong twice in a row is given up: the file is most likely wrong at the server.
  public static let standard = FailureTable(
    codes + informational + successful + redirections + clientErrors + serverErrors + [
      Row(.other, .giveUp, because: "a failure nobody has described is not repeated: add a row for its code")
    ])

  private static let codes: [Row] = [
    Row(.code(.network), .resume, because: "connections come back"),
    Row(.code(.offline), .waitForNetwork, because: "no attempt can succeed before there is a way out"),
    Row(.code(.hostNotFound), .resume, because: "name servers fail for a while, and networks change"),
    Row(.code(.tls), .giveUp, because: "a refused certificate stays refused"),
    Row(.code(.timedOut), .resume, because: "a slow server or network may recover"),
    Row(.code(.httpStatus), .giveUp, because: "a status that no other row knows"),
    Row(
      .code(.invalidResponse), .resume, because: "often one proxy's or one connection's mistake, so once more",
      attempts: 2),
    Row(.code(.tooManyRedirects), .giveUp, because: "a redirect loop stays one"),
    Row(.code(.contentChanged), .restart, because: "the bytes on disk belong to a file that is gone"),
    Row(.code(.sizeChanged), .restart, because: "the bytes on disk belong to a file that is gone"),
    Row(.code(.unproven), .resume, because: "the bytes on disk are compared with the whole file then"),
    Row(.code(.wrongRange), .resume, because: "the whole is asked for then, and compared with the bytes on disk"),
    Row(.code(.wrongRangeEnd), .resume, because: "the whole is asked for then, and compared with the bytes on disk"),
    Row(.code(.unreadableRange), .resume, because: "the whole is asked for then, and compared with the bytes on disk"),
    Row(.code(.multipartRange), .resume, because: "the whole is asked for then, and compared with the bytes on disk"),
    Row(.code(.rangeIgnored), .resume, because: "the whole is compared with the bytes on disk"),
    Row(
      .code(.rangeNotSatisfiable), .resume, because: "the whole is asked for then, and compared with the bytes on disk"),
    Row(
      .code(.wrongContentCoding), .resume, because: "the whole is asked for then, and compared with the bytes on disk"),
    Row(.code(.linkExpired), .refresh, because: "somebody who knows has to give a fresh link"),
    Row(.code(.lengthMismatch), .resume, because: "the connection ended early; what arrived is good"),
    Row(
      .code(.digestMismatch), .restart, because: "bytes were damaged on the way; twice in a row, at the server",
      attempts: 2),
    Row(.code(.noSpace), .waitForDisk, because: "somebody has to make room; what arrived is kept"),
    Row(.code(.tooManyOpenFiles), .waitForDescriptors, because: "descriptors come free as other downloads end"),
    Row(.code(.inUse), .waitForOwner, because: "whoever holds the bytes lets go of them some day"),
    Row(.code(.permission), .giveUp, because: "somebody has to grant access"),
    Row(.code(.storage), .giveUp, because: "a failing disk must be looked at"),
    Row(.code(.alreadyExists), .giveUp, because: "the conflict policy says to fail"),
    Row(.code(.unsafePath), .giveUp, because: "the path stays unsafe"),
    Row(.code(.tooLarge), .giveUp, because: "the file stays too large"),
    Row(.code(.unsupportedURL), .giveUp, because: "no source takes the URL"),
    Row(.code(.invalidRequest), .giveUp, because: "the request itself is wrong"),
    Row(.code(.invalidPipeline), .giveUp, because: "the pipeline itself is wrong"),
    Row(.code(.processing), .giveUp, because: "a step does the same again with the same bytes"),
    Row(.code(.ledger), .giveUp, because: "without its ledger nothing may go on"),
    Row(.code(.cancelled), .giveUp, because: "somebody wanted it so"),
    Row(.code(.removed), .giveUp, because: "somebody wanted it so"),
    Row(.code(.shutDown), .giveUp, because: "the downloader is gone"),
    Row(.code(.notOwner), .giveUp, because: "another owner works on it"),
  ]

  private static func row(
    _ status: Int, _ action: Action, _ name: String, _ reason: String, attempts: Int? = nil
  ) -> Row {
    Row(.httpStatus(status), action, because: "\(name): \(reason)", attempts: attempts)
  }

  private static let informational: [Row] = [
    row(100, .giveUp, "Continue", "an interim answer cannot be the last one"),
    row(101, .giveUp, "Switching Protocols", "nobody asked for another protocol"),
    row(102, .giveUp, "Processing", "an interim answer cannot be the last one"),
    row(103, .giveUp, "Early Hints", "an interim answer cannot be the last one"),
    row(104, .giveUp, "Upload Resumption Supported", "an interim answer, and nothing was uploaded"),
    Row(.httpStatusClass(1), .giveUp, because: "an interim answer cannot be the last one"),
  ]

  private static let successful: [Row] = [
    row(200, .giveUp, "OK", "a whole file that could not be used"),
    row(201, .giveUp, "Created", "nothing was to be created"),
    row(202, .resume, "Accepted", "the server is still preparing the file"),
    row(203, .giveUp, "Non-Authoritative Information", "a proxy has changed the bytes"),
    row(204, .giveUp, "No Content", "there is no file"),
    row(205, .giveUp, "Reset Content", "there is no file"),
    row(206, .restart, "Partial Content", "a part that nobody can place"),
    row(207, .giveUp, "Multi-Status", "a WebDAV listing is no file"),
    row(208, .giveUp, "Already Reported", "a WebDAV listing is no file"),
    row(226, .giveUp, "IM Used", "nobody asked for a delta"),
    Row(.httpStatusClass(2), .giveUp, because: "a success that brings no file"),
  ]

  private static let redirections: [Row] = [
    row(300, .giveUp, "Multiple Choices", "somebody has to choose"),
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
    row(400, .giveUp, "Bad Request", "the same request gets the same answer"),
    row(401, .refresh, "Unauthorized", "credentials are missing, wrong, or have expired"),
    row(402, .giveUp, "Payment Required", "somebody has to pay"),
    row(403, .refresh, "Forbidden", "access is refused, or the link has expired"),
    row(404, .giveUp, "Not Found", "the file is not there"),
    row(405, .giveUp, "Method Not Allowed", "the URL cannot be read"),
    row(406, .giveUp, "Not Acceptable", "the server has no form that is wanted"),
    row(407, .giveUp, "Proxy Authentication Required", "the proxy wants credentials"),
    row(408, .resume, "Request Timeout", "the server gave up waiting on this connection"),
    row(409, .giveUp, "Conflict", "somebody has to settle it"),
    row(410, .refresh, "Gone", "the file will not come back under this link"),
    row(411, .giveUp, "Length Required", "the same request gets the same answer"),
    row(412, .giveUp, "Precondition Failed", "the request's own condition does not hold"),
    row(413, .giveUp, "Content Too Large", "the same request gets the same answer"),
    row(414, .giveUp, "URI Too Long", "the same request gets the same answer"),
    row(415, .giveUp, "Unsupported Media Type", "the same request gets the same answer"),
    row(416, .giveUp, "Range Not Satisfiable", "a range was refused that nobody asked for"),
    row(417, .giveUp, "Expectation Failed", "the same request gets the same answer"),
    row(418, .giveUp, "(Unused)", "the server means it as a refusal"),
    row(421, .resume, "Misdirected Request", "another connection may reach the right server"),
    row(422, .giveUp, "Unprocessable Content", "the same request gets the same answer"),
    row(423, .resume, "Locked", "locks are taken for a while"),
    row(424, .giveUp, "Failed Dependency", "the same request gets the same answer"),
    row(425, .resume, "Too Early", "the request is welcome once the handshake is complete"),
    row(426, .giveUp, "Upgrade Required", "the server wants a protocol that was not offered"),
    row(428, .giveUp, "Precondition Required", "the same request gets the same answer"),
    row(429, .resume, "Too Many Requests", "the server wants us slower"),
    row(431, .giveUp, "Request Header Fields Too Large", "the same request gets the same answer"),
    row(451, .giveUp, "Unavailable For Legal Reasons", "a law does not change by itself"),
    Row(.httpStatusClass(4), .giveUp, because: "the server takes the request for wrong"),
  ]

  private static let serverErrors: [Row] = [
    row(500, .resume, "Internal Server Error", "it may pass"),
    row(501, .giveUp, "Not Implemented", "the server cannot do it"),
    row(502, .resume, "Bad Gateway", "the server behind may come back"),
    row(503, .resume, "Service Unavailable", "the server says it will pass"),
    row(504, .resume, "Gateway Timeout", "the server behind may come back"),
    row(505, .giveUp, "HTTP Version Not Supported", "the server cannot do it"),
    row(506, .giveUp, "Variant Also Negotiates", "the server is set up wrongly"),
    row(507, .giveUp, "Insufficient Storage", "RFC 4918 §11.5 forbids repeating it unasked"),
    row(508, .giveUp, "Loop Detected", "the server is set up wrongly"),
    row(510, .giveUp, "Not Extended", "the server wants an extension that is obsolete"),
    row(511, .giveUp, "Network Authentication Required", "somebody has to log in to the network"),
    Row(.httpStatusClass(5), .resume, because: "an error at the server may pass"),
  ]
}
