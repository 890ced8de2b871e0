#if LIBCURL
  import CCurl
  import DownpipeCore

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// Maps libcurl's results to download errors whose messages suggest a remedy.
  enum TransferFailure {
    /// CURLE_TOO_LARGE of 8.6 and later.
    private static let tooLarge = CURLcode(rawValue: 100)

    /// Such as `Transfer-Encoding: identity` beside a shorter length, which libcurl ignores then.
    static let tooManyBytes = DownloadError(
      .invalidResponse, "the body has more bytes than its Content-Length says; ask the operator of the server")

    static func error(_ code: CURLcode, _ transfer: Transfer) -> DownloadError {
      let text = String(cString: curl_easy_strerror(code))
      let limits = transfer.configuration
      switch code {
      case CURLE_COULDNT_RESOLVE_HOST:
        return DownloadError(
          .hostNotFound, "the host name \(transfer.host) could not be resolved: check its spelling and the network")
      case CURLE_COULDNT_RESOLVE_PROXY:
        return DownloadError(.hostNotFound, "the host name of the proxy could not be resolved: check the proxy")
      case CURLE_OPERATION_TIMEDOUT: return timedOut(transfer, limits)
      // libcurl has no code for malformed chunks before 8.11.
      case CURLE_RECV_ERROR where String(cString: transfer.message).contains("chunk"):
        return DownloadError(.invalidResponse, "the chunks of the response are malformed\(after(transfer))")
      case CURLE_OUT_OF_MEMORY where !transfer.hasHead && transfer.isConnected, tooLarge:
        return DownloadError(
          .invalidResponse,
          "a line in the header of the response is too long for libcurl; ask the operator of the server")
      case CURLE_OK, CURLE_COULDNT_CONNECT, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE,
        CURLE_PROXY:
        return broken(code, text, transfer)
      case CURLE_HTTP2, CURLE_HTTP2_STREAM:
        return DownloadError(.network, "the HTTP/2 connection failed\(after(transfer)): \(text); a retry may help")
      case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR:
        return DownloadError(
          .tls,
          "the server's certificate is not trusted: it may be expired, for another host, or from an authority that is "
            + "not a trust root; add it to the trust roots if the authority is yours")
      case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        return DownloadError(.tls, "the server's public key is not one of the pinned ones")
      case CURLE_SSL_CONNECT_ERROR:
        return DownloadError(
          .tls, "the TLS handshake failed; check that the port supports TLS \(limits.tls.minimumVersion) or later")
      case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CIPHER, CURLE_SSL_CRL_BADFILE,
        CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED:
        return DownloadError(.tls, "the certificates or the key cannot be used: \(text)")
      case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL:
        return DownloadError(.invalidResponse, wrongHead(transfer))
      // A callback that ends a transfer gives its own reason: this is libcurl's decoder.
      case CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR:
        return DownloadError(
          .invalidResponse,
          (transfer.hasTransferCoding
            ? "the body of the response is not what its Transfer-Encoding says" : "the response cannot be read")
            + "\(after(transfer)); ask the operator of the server")
      // libcurl's text would blame the caller.
      case CURLE_BAD_FUNCTION_ARGUMENT where transfer.isConnected:
        return DownloadError(
          .invalidResponse,
          (transfer.hasHead
            ? "the fields behind the last chunk of the response are malformed"
            : "a line in the header of the response is malformed, such as one that begins with a blank and continues no field")
            + "; ask the operator of the server")
      case CURLE_URL_MALFORMAT:
        return DownloadError(.invalidRequest, "the URL cannot be used: check its host and port")
      default:
        return DownloadError(.network, "the transfer failed\(after(transfer)): \(text); a retry may help")
      }
    }

    /// What is wrong with the head of a response, by libcurl's description.
    private static func wrongHead(_ transfer: Transfer) -> String {
      let text = String(cString: transfer.message)
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

    private static func broken(_ code: CURLcode, _ text: String, _ transfer: Transfer) -> DownloadError {
      let limits = transfer.configuration
      let reason = Int32(truncatingIfNeeded: transfer.handle?.number(CURLINFO_OS_ERRNO) ?? 0)
      switch transfer.refusal {
      case .privateAddress(let address)?:
        return DownloadError(
          .privateAddress,
          "\(transfer.host) is at \(address), which is not an address of the public internet; such addresses are blocked"
        )
      case .system(let number)? where [EMFILE, ENFILE].contains(number): return outOfDescriptors
      case .system, nil: break
      }
      if transfer.handle?.number(CURLINFO_HTTP_CONNECTCODE) == 407 || transfer.status == 407 {
        return DownloadError(
          .httpStatus, "the proxy requires a user name and a password: set them in the proxy's credentials",
          httpStatus: 407)
      }
      let why = reason == 0 ? text : "\(String(cString: strerror(reason))) (errno \(reason))"
      guard transfer.received == 0, !transfer.hasHead else {
        return DownloadError(
          .network, "the connection ended during the body, after \(transfer.received) bytes; a retry may help")
      }
      let connectStatus = transfer.handle?.number(CURLINFO_HTTP_CONNECTCODE) ?? 0
      if connectStatus >= 300 {
        return DownloadError(
          .network,
          "the proxy refused to connect to \(transfer.host) (status \(connectStatus)); check the rules of the proxy")
      }
      if code == CURLE_PROXY {
        return DownloadError(.network, "the proxy refused the connection; check the proxy and the host")
      }
      if code == CURLE_COULDNT_CONNECT {
        if [ENETUNREACH, ENETDOWN].contains(reason) {
          return DownloadError(
            .offline, "there is no route to \(transfer.host): \(why); check the network connection")
        }
        return DownloadError(
          .network,
          "no connection to \(transfer.host)\(limits.proxyWords): \(why); check host, port and network, or try again later"
        )
      }
      return DownloadError(.network, "the connection was closed without a response; a retry may help")
    }

    private static func timedOut(_ transfer: Transfer, _ limits: HTTPSource.Configuration) -> DownloadError {
      // libcurl's clock counts whole milliseconds.
      if let deadline = transfer.order.deadline, deadline <= .now + .milliseconds(10) {
        return DownloadError(
          .timedOut,
          "the response was not complete within the time limit\(limits.totalTimeLimit.map { " of \($0.inSeconds)" } ?? ""); "
            + "try again later, or allow more time")
      }
      if transfer.isConnected {
        let speed = limits.minimumSpeed.map { " of \($0.bytesPerSecond) bytes a second" } ?? ""
        return DownloadError(.timedOut, "the server was slower than the minimum speed\(speed); try again later")
      }
      return DownloadError(
        .timedOut,
        "there was no connection within the time limit of \(limits.connectTimeLimit.inSeconds); check host and network, "
          + "or try again later")
    }

    private static func after(_ transfer: Transfer) -> String {
      transfer.hasHead ? " after \(transfer.received) bytes" : ""
    }

    static let outOfDescriptors = DownloadError(
      .tooManyOpenFiles,
      "no connection could be opened: too many files and connections are open; run fewer downloads at once, or raise the "
        + "limit (ulimit -n)")
  }

  extension HTTPSource.Configuration {
    /// For the message about a connection that failed: libcurl does not tell which one.
    fileprivate var proxyWords: String {
      if case .proxy(let proxy, _) = proxy.kind { " or to its proxy \(proxy)" } else { "" }
    }
  }
#endif
