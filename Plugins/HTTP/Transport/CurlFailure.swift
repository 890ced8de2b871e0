#if LIBCURL
  package import CCurl
  package import DownpipeCore
  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// Maps the results of libcurl that mean the same in every protocol to download errors whose messages suggest a remedy.
  package enum CurlFailure {
    /// Returns the error of a failure that does not depend on the protocol: name look-up, connection, time limits, TLS,
    /// a closed connection in the body; `nil` for others.
    package static func error(_ code: CURLcode, _ transfer: CurlTransfer) -> DownloadError? {
      switch code {
      case CURLE_COULDNT_RESOLVE_HOST:
        return DownloadError(
          .hostNotFound, "the host name \(transfer.host) could not be resolved: check its spelling and the network")
      case CURLE_COULDNT_RESOLVE_PROXY:
        return DownloadError(
          .hostNotFound, "the host name of the proxy could not be resolved: check the proxy", scope: .host)
      case CURLE_OPERATION_TIMEDOUT: return timedOut(transfer)
      case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR:
        return DownloadError(
          .tls,
          "the server's certificate is not trusted: it may be expired, for another host, or from an authority that is "
            + "not a trust root; add it to the trust roots if the authority is yours")
      case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        return DownloadError(.tls, "the server's public key is not one of the pinned ones")
      case CURLE_SSL_CONNECT_ERROR:
        return DownloadError(
          .tls,
          "the TLS handshake failed; check that the port supports TLS \(transfer.settings.tls.minimumVersion) or later")
      case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CIPHER, CURLE_SSL_CRL_BADFILE,
        CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED:
        return DownloadError(.tls, "the certificates or the key cannot be used: \(text(code))")
      case CURLE_URL_MALFORMAT:
        return DownloadError(.invalidRequest, "the URL cannot be used: check its host and port")
      default: return refused(transfer)
      }
    }

    /// The error of a socket that was not opened; `nil` if none was refused.
    private static func refused(_ transfer: CurlTransfer) -> DownloadError? {
      switch transfer.refusal {
      case .privateAddress(let address)?:
        DownloadError(
          .privateAddress,
          "\(transfer.host) is at \(address), which is not an address of the public internet; such addresses are blocked"
        )
      case .system(let number)? where [EMFILE, ENFILE].contains(number): outOfDescriptors
      case .system, nil: nil
      }
    }

    /// The error of a connection that was closed in the body, or that could not be made; `nil` when it was made, and no
    /// head had come.
    package static func broken(_ code: CURLcode, _ transfer: CurlTransfer) -> DownloadError? {
      guard transfer.received == 0, !transfer.hasHead else {
        return DownloadError(
          .network, "the connection ended during the body, after \(transfer.received) bytes; a retry may help")
      }
      guard code == CURLE_COULDNT_CONNECT else { return nil }
      let reason = Int32(truncatingIfNeeded: transfer.handle?.number(CURLINFO_OS_ERRNO) ?? 0)
      let why = reason == 0 ? text(code) : "\(String(cString: strerror(reason))) (errno \(reason))"
      if [ENETUNREACH, ENETDOWN].contains(reason) {
        return DownloadError(.offline, "there is no route to \(transfer.host): \(why); check the network connection")
      }
      return DownloadError(
        .network,
        "no connection to \(transfer.host)\(transfer.settings.proxyWords): \(why); check host, port and network, or try "
          + "again later",
        scope: transfer.settings.mayUseProxy ? .host : .download)
    }

    private static func timedOut(_ transfer: CurlTransfer) -> DownloadError {
      let limits = transfer.settings
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

    /// The error of a failure that has no other description.
    package static func other(_ code: CURLcode, _ transfer: CurlTransfer) -> DownloadError {
      DownloadError(.network, "the transfer failed\(after(transfer)): \(text(code)); a retry may help")
    }

    static func after(_ transfer: CurlTransfer) -> String {
      transfer.hasHead ? " after \(transfer.received) bytes" : ""
    }

    package static func text(_ code: CURLcode) -> String { String(cString: curl_easy_strerror(code)) }

    static let outOfDescriptors = DownloadError(
      .tooManyOpenFiles,
      "no connection could be opened: too many files and connections are open; run fewer downloads at once, or raise the "
        + "limit (ulimit -n)")
  }

  extension CurlSettings {
    /// Whether the connection may be that to a proxy.
    fileprivate var mayUseProxy: Bool { proxy.mayLookNamesUp(blocksPrivateAddresses: false) }

    /// For the message about a connection that failed: libcurl does not tell which one.
    fileprivate var proxyWords: String {
      if case .proxy(let proxy, _) = proxy.kind { " or to its proxy \(proxy)" } else { "" }
    }
  }
#endif
