#if LIBCURL
  import CCurl
  import DownpipeCore
  import DownpipeHTTP

  /// What FTP adds to an order.
  struct FTPRequest: ProtocolRequest {
    /// The offset of the first byte.
    let start: Int64
    /// `nil` for an anonymous log-in.
    let logIn: FileLogIn?
    let encryption: FileTransferSource.Encryption
    /// Whether the connection is encrypted from the first byte.
    let isImplicit: Bool
    /// Whether only size and time are asked for.
    let asksOnly: Bool

    func makeHandler() -> any ProtocolHandler { FTPHandler(self) }
  }

  /// The dialogue on the control connection, as far as it says something about the file.
  ///
  /// libcurl sends `MDTM`, `SIZE`, `REST` and `RETR`, and reports the lines of all replies.
  final class FTPHandler: ProtocolHandler {
    private let request: FTPRequest
    private var headerBytes = 0
    /// The reply to `SIZE`, if the server knows it.
    private var size: String?
    /// The code of the last reply.
    private(set) var code = 0

    init(_ request: FTPRequest) { self.request = request }

    var leavesCleanHandle: Bool { false }
    var opensDataConnections: Bool { true }
    var waitsWithinCalls: Bool { true }

    func prepare(_ handle: EasyHandle, for transfer: CurlTransfer) throws(DownloadError) {
      guard handle.setProtocols("ftp,ftps", bits: 0b1100) == CURLE_OK else {
        throw DownloadError(.unsupportedURL, "this libcurl was built without FTP or without FTPS")
      }
      let encryption =
        switch request.encryption {
        case .required: CURLUSESSL_ALL
        case .ifAvailable: CURLUSESSL_TRY
        case .none: CURLUSESSL_NONE
        }
      try handle.require(handle.set(CURLOPT_USE_SSL, Int(encryption.rawValue)), "TLS")
      // A server must not choose which host is connected to.
      handle.set(CURLOPT_FTP_SKIP_PASV_IP, 1)
      handle.set(CURLOPT_FILETIME, 1)
      if request.start > 0 { handle.set(CURLOPT_RANGE, "\(request.start)-") }
      // An HTTP proxy would fetch the file itself.
      handle.set(CURLOPT_HTTPPROXYTUNNEL, 1)
      handle.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
      if let logIn = request.logIn {
        handle.set(CURLOPT_USERNAME, logIn.user)
        handle.set(CURLOPT_PASSWORD, logIn.password ?? "")
      }
      if request.asksOnly {
        handle.set(CURLOPT_NOBODY, 1)
        // libcurl writes size and time as lines of HTTP, also where a body would go.
        downpipe_set_data_callback(handle.pointer, CURLOPT_WRITEFUNCTION) { _, size, count, _ in size * count }
      }
      if request.isImplicit { forbidReuse(handle) }
      transfer.guardWaits(of: handle)
    }

    /// Servers require that a data connection continues the TLS session of its control connection. libcurl keeps that
    /// session with the handle, and not with the connection, which another handle would use.
    private func forbidReuse(_ handle: EasyHandle) { handle.set(CURLOPT_FORBID_REUSE, 1) }

    func receiveHeader(_ line: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> Bool {
      headerBytes += line.count
      let maximum = transfer.settings.maximumHeaderBytes
      if headerBytes > maximum {
        return transfer.stop(
          DownloadError(
            .invalidResponse,
            "the replies of the server have more than \(maximum) bytes; ask the operator of the server"))
      }
      transfer.noteActivity()
      // Other lines are part of a reply of several lines.
      guard let reply = FTPReply(line) else { return true }
      code = reply.code
      switch code {
      case 213: size = reply.text
      // The reply to EPSV or PASV, which comes between those to MDTM and SIZE.
      case 227, 229: size = nil
      // The reply to AUTH.
      case 234, 334: if let handle = transfer.handle { forbidReuse(handle) }
      case 125, 150: if !transfer.hasHead { return deliver(in: transfer) }
      default: break
      }
      return true
    }

    private func deliver(in transfer: CurlTransfer, isBehindEnd: Bool = false) -> Bool {
      var file = ResponseHead.FileFacts()
      let modified = transfer.handle?.largeNumber(CURLINFO_FILETIME_T) ?? -1
      if modified >= 0 { file.modified = modified }
      file.size = size.flatMap(FTPReply.size)
      file.isBehindEnd = isBehindEnd
      let length = file.size.map { max(0, $0 - request.start) }
      return transfer.deliver(ResponseHead(status: code, file: file), length: length)
    }

    /// Delivers what the server has said of the file, of which nothing was fetched.
    private func deliverFacts(in transfer: CurlTransfer) -> Result<Void, any Error> {
      // No reply to EPSV comes between those to MDTM and SIZE. libcurl has a length only after the latter.
      if transfer.handle?.largeNumber(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T) ?? -1 < 0 { size = nil }
      var file = ResponseHead.FileFacts()
      let modified = transfer.handle?.largeNumber(CURLINFO_FILETIME_T) ?? -1
      if modified >= 0 { file.modified = modified }
      file.size = size.flatMap(FTPReply.size)
      _ = transfer.deliver(ResponseHead(status: code, file: file), length: 0)
      return .success(())
    }

    func bodyBegins(in transfer: CurlTransfer) -> Bool { deliver(in: transfer) }

    func end(_ result: CURLcode, of transfer: CurlTransfer) -> Result<Void, any Error> {
      if request.asksOnly, result == CURLE_OK { return deliverFacts(in: transfer) }
      switch result {
      // libcurl asks for no bytes where there are none.
      case CURLE_OK where !transfer.hasHead, CURLE_BAD_DOWNLOAD_RESUME where !transfer.hasHead:
        // libcurl takes a size that is not a number for 0.
        guard size.flatMap(FTPReply.size) != nil else { return .failure(RangesRefused()) }
        _ = deliver(in: transfer, isBehindEnd: true)
        return .success(())
      case CURLE_FTP_COULDNT_USE_REST: return .failure(RangesRefused())
      case CURLE_OK where transfer.leftBytesUnread: return .failure(FileTransferFailure.grown)
      case CURLE_OK: return FileTransferFailure.completeness(transfer)
      // All bytes have come, and the last reply has not: a firewall may have forgotten the control connection.
      case CURLE_OPERATION_TIMEDOUT, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_ABORTED_BY_CALLBACK,
        CURLE_FTP_ACCEPT_TIMEOUT:
        if transfer.hasHead, let length = transfer.length, transfer.received == length, !transfer.leftBytesUnread {
          return .success(())
        }
        return .failure(FileTransferFailure.ftp(result, code, transfer))
      default: return .failure(FileTransferFailure.ftp(result, code, transfer))
      }
    }
  }

  /// The last line of a reply (RFC 959 §4.2).
  struct FTPReply: Equatable {
    let code: Int
    let text: String

    init?(_ line: UnsafeRawBufferPointer) {
      guard line.count >= 4, line[3] == UInt8(ascii: " ") else { return nil }
      var code = 0
      for byte in line.prefix(3) {
        guard (0x30...0x39).contains(byte) else { return nil }
        code = code * 10 + Int(byte - 0x30)
      }
      self.code = code
      text = String(decoding: line.dropFirst(4), as: UTF8.self)
    }

    /// The number at the end of the reply to `SIZE`: some servers put words before it.
    static func size(_ text: String) -> Int64? {
      let digits = text.utf8.reversed().drop { $0 <= 0x20 }.prefix { (0x30...0x39).contains($0) }
      return Int64(String(decoding: digits.reversed(), as: UTF8.self))
    }
  }
#endif
