#if LIBCURL
  import CCurl
  import DownpipeCore

  /// The head of a response, and its end. Several heads may come before the one that is the answer.
  final class HTTPHandler: ProtocolHandler {
    let order: HTTPOrder
    private var collector = HeadCollector()
    private(set) var status = 0
    /// Whether the response has a Transfer-Encoding.
    private(set) var hasTransferCoding = false
    /// Whether there is a head that libcurl may follow up with another request.
    private var isHeadPending = false
    /// Whether the body ends with its connection: it has neither a length nor chunks (RFC 9112 §6.3).
    private var endsWithConnection = false
    /// How often the server or the proxy has asked for a password.
    private var questions = 0
    /// The transfer, while it sends a body.
    private unowned var transfer: CurlTransfer?
    /// The bytes of the request's body that libcurl has taken.
    var sent: Int64 = 0
    /// Digest asks once, and again when its nonce is too old; a proxy asks for itself.
    private static let maximumQuestions = 4

    init(_ order: HTTPOrder) { self.order = order }

    /// `curl_easy_reset` keeps the host of cookies.
    var leavesCleanHandle: Bool {
      order.jar == nil && order.fields["Host"] == nil && order.method == .get && order.signature == nil
    }

    var opensDataConnections: Bool { false }

    /// Gives libcurl the next bytes of the request's body.
    func send(into buffer: UnsafeMutableRawBufferPointer) -> Int {
      guard let body = order.body, let transfer else { return Int(CURL_READFUNC_ABORT) }
      // The server is silent while it receives.
      transfer.noteActivity()
      do {
        let count = try body.read(into: buffer, at: sent)
        sent += Int64(count)
        return count
      } catch {
        _ = transfer.stop(error)
        return Int(CURL_READFUNC_ABORT)
      }
    }

    func sends(in transfer: CurlTransfer) { self.transfer = transfer }

    func receiveHeader(_ line: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> Bool {
      // The next head has begun: without its end there is no response.
      if !transfer.hasHead, line.starts(with: "HTTP/".utf8) { isHeadPending = false }
      let isEnd = transfer.hasHead ? takeTrailers(line) : collector.take(line)
      let maximumHeaderBytes = transfer.settings.maximumHeaderBytes
      if collector.bytes > maximumHeaderBytes {
        return transfer.stop(
          DownloadError(
            .invalidResponse,
            "the header of the response has more than \(maximumHeaderBytes) bytes; ask the operator of the server, or allow "
              + "more"))
      }
      if transfer.hasHead {
        transfer.noteActivity()
        return true
      }
      guard isEnd, let handle = transfer.handle else { return true }
      let status = handle.number(CURLINFO_RESPONSE_CODE)
      if status == 101 {
        return transfer.stop(
          DownloadError(
            .invalidResponse,
            "the server switched to another protocol (status 101), which was not requested; ask the operator of the server",
            httpStatus: 101))
      }
      // After an interim response there is another one, and perhaps after a question for a password.
      if (100..<200).contains(status) { return true }
      if status == 407 || (status == 401 && order.login?.mayAskAgain == true) {
        isHeadPending = true
        questions += 1
        if questions <= Self.maximumQuestions { return true }
        return transfer.stop(
          DownloadError(
            .httpStatus, "the server asks for the password again and again: check the user name and the password",
            httpStatus: status))
      }
      return deliver(status, in: transfer)
    }

    /// Takes trailers. libcurl hands over several lines at once if they have come while the transfer was paused.
    private func takeTrailers(_ lines: UnsafeRawBufferPointer) -> Bool {
      var rest = lines[...]
      while let end = rest.firstIndex(of: 0x0A) {
        _ = collector.take(UnsafeRawBufferPointer(rebasing: rest[...end]))
        rest = rest[(end + 1)...]
      }
      if !rest.isEmpty { _ = collector.take(UnsafeRawBufferPointer(rebasing: rest)) }
      return false
    }

    private func deliver(_ status: Int, in transfer: CurlTransfer) -> Bool {
      if collector.hidesTransferCoding {
        return transfer.stop(
          DownloadError(
            .invalidResponse, "the Transfer-Encoding of the response is malformed; ask the operator of the server"))
      }
      self.status = status
      let head = ResponseHead(status: status, fields: collector.takeFields())
      hasTransferCoding = head.fields["Transfer-Encoding"] != nil
      let hasLength = order.method != .head && TransferCodings.areIdentity(head.fields)
      let length = hasLength ? (try? ContentLength.parse(head.fields))?.bytes : nil
      endsWithConnection = hasLength && length == nil && ![204, 304].contains(status)
      return transfer.deliver(head, length: length)
    }

    /// Delivers the last head if it was complete: libcurl forgives a response that ends in its head.
    func bodyBegins(in transfer: CurlTransfer) -> Bool {
      guard isHeadPending, let handle = transfer.handle else { return false }
      return deliver(handle.number(CURLINFO_RESPONSE_CODE), in: transfer)
    }

    func end(_ code: CURLcode, of transfer: CurlTransfer) -> Result<Void, any Error> {
      if code == CURLE_OK, !transfer.hasHead, !bodyBegins(in: transfer), let reason = transfer.stopReason {
        return .failure(reason)
      }
      guard code == CURLE_OK, transfer.hasHead else { return .failure(HTTPFailure.error(code, transfer, self)) }
      if let length = transfer.length, transfer.received > length { return .failure(HTTPFailure.tooManyBytes) }
      return isBodyComplete(transfer) ? .success(()) : .failure(HTTPFailure.error(code, transfer, self))
    }

    /// HTTP/2 and later have an end of their own.
    func bodyEnd(of transfer: CurlTransfer) -> Body.End {
      var end = Body.End()
      if !collector.fields.fields.isEmpty {
        end.digests = ReprDigest.digests(inTrailer: collector.fields, isWholeContent: [200, 203].contains(status))
      }
      end.isUnconfirmed =
        endsWithConnection && !transfer.hasClosureAlert && transfer.order.url.hasPrefix("https:")
        && (transfer.handle?.number(CURLINFO_HTTP_VERSION) ?? 0) < Int(CURL_HTTP_VERSION_2_0)
      return end
    }

    /// libcurl does not see a Content-Length with a blank before its colon.
    private func isBodyComplete(_ transfer: CurlTransfer) -> Bool {
      transfer.isDraining || transfer.received >= transfer.length ?? 0 || order.method == .head
        || [204, 304].contains(status)
    }
  }
#endif
