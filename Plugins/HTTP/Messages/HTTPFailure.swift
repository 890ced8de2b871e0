#if LIBCURL
  import CCurl
  import DownpipeCore

  /// Maps libcurl's results to download errors, where HTTP gives them a meaning of their own.
  enum HTTPFailure {
    /// CURLE_TOO_LARGE of 8.6 and later.
    private static let tooLarge = CURLcode(rawValue: 100)

    /// Such as `Transfer-Encoding: identity` beside a shorter length, which libcurl ignores then.
    static let tooManyBytes = DownloadError(
      .invalidResponse, "the body has more bytes than its Content-Length says; ask the operator of the server")

    static func error(_ code: CURLcode, _ transfer: CurlTransfer, _ handler: HTTPHandler) -> DownloadError {
      let after = CurlFailure.after(transfer)
      switch code {
      // libcurl has no code for malformed chunks before 8.11.
      case CURLE_RECV_ERROR where transfer.failureText.contains("chunk"):
        return DownloadError(.invalidResponse, "the chunks of the response are malformed\(after)")
      case CURLE_OUT_OF_MEMORY where !transfer.hasHead && transfer.isConnected, tooLarge:
        return DownloadError(
          .invalidResponse,
          "a line in the header of the response is too long for libcurl; ask the operator of the server")
      case CURLE_OK, CURLE_COULDNT_CONNECT, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE,
        CURLE_PROXY:
        return broken(code, transfer, handler)
      case CURLE_HTTP2, CURLE_HTTP2_STREAM:
        return DownloadError(
          .network, "the HTTP/2 connection failed\(after): \(CurlFailure.text(code)); a retry may help")
      case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL:
        return DownloadError(.invalidResponse, wrongHead(transfer))
      // A callback that ends a transfer gives its own reason: this is libcurl's decoder.
      case CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR:
        return DownloadError(
          .invalidResponse,
          (handler.hasTransferCoding
            ? "the body of the response is not what its Transfer-Encoding says" : "the response cannot be read")
            + "\(after); ask the operator of the server")
      // libcurl's text would blame the caller.
      case CURLE_BAD_FUNCTION_ARGUMENT where transfer.isConnected:
        return DownloadError(
          .invalidResponse,
          (transfer.hasHead
            ? "the fields behind the last chunk of the response are malformed"
            : "a line in the header of the response is malformed, such as one that begins with a blank and continues no field")
            + "; ask the operator of the server")
      default:
        return CurlFailure.error(code, transfer) ?? CurlFailure.other(code, transfer)
      }
    }

    /// What is wrong with the head of a response, by libcurl's description.
    private static func wrongHead(_ transfer: CurlTransfer) -> String {
      let text = transfer.failureText
      let causes = [
        ("Content-Length", "the Content-Length of the response is not a number of bytes"),
        ("Nul byte", "a line in the header of the response has a NUL byte"),
        ("colon", "a line in the header of the response has no colon, and is no field"),
        ("version", "the response has a version of HTTP that does not exist"),
        ("response code", "the status of the response is not a number of three digits"),
      ]
      if let cause = causes.first(where: { text.contains($0.0) })?.1 {
        return cause + "; ask the operator of the server"
      }
      return "the response is not HTTP; check that the port belongs to a web server"
    }

    private static func broken(_ code: CURLcode, _ transfer: CurlTransfer, _ handler: HTTPHandler) -> DownloadError {
      if let refused = CurlFailure.error(code, transfer) { return refused }
      let connectStatus = transfer.handle?.number(CURLINFO_HTTP_CONNECTCODE) ?? 0
      if connectStatus == 407 || handler.status == 407 {
        return DownloadError(
          .httpStatus, "the proxy requires a user name and a password: set them in the proxy's credentials",
          httpStatus: 407)
      }
      let hasBegun = transfer.received > 0 || transfer.hasHead
      if !hasBegun, connectStatus >= 300 {
        return DownloadError(
          .network,
          "the proxy refused to connect to \(transfer.host) (status \(connectStatus)); check the rules of the proxy")
      }
      if !hasBegun, code == CURLE_PROXY {
        return DownloadError(.network, "the proxy refused the connection; check the proxy and the host", scope: .host)
      }
      return CurlFailure.broken(code, transfer)
        ?? DownloadError(.network, "the connection was closed without a response; a retry may help")
    }
  }
#endif
