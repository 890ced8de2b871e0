#if LIBCURL
  import CCurl
  import DownpipeCore
  import DownpipeHTTP

  /// Maps libcurl's results to download errors, where FTP and SFTP give them a meaning of their own.
  ///
  /// Texts of a server are not repeated: they may contain what it was sent, such as a password.
  enum FileTransferFailure {
    /// Such as a file that is being written to, or a `SIZE` that counts something else.
    static let grown = DownloadError(
      .sizeChanged,
      "the server sent more bytes than the size that it had stated: the file may have grown; start the download again")

    /// Whether all bytes have come that were announced.
    static func completeness(_ transfer: CurlTransfer) -> Result<Void, any Error> {
      guard let length = transfer.length, transfer.received != length else { return .success(()) }
      return .failure(shorter(transfer))
    }

    private static func shorter(_ transfer: CurlTransfer) -> DownloadError {
      DownloadError(
        .lengthMismatch,
        "the server sent \(transfer.received) of \(transfer.length.map { "the \($0)" } ?? "all the") bytes; a retry may help"
      )
    }

    /// - Parameter reply: The code of the server's last reply; 0 without one.
    static func ftp(_ code: CURLcode, _ reply: Int, _ transfer: CurlTransfer) -> DownloadError {
      // To libcurl, a server that closes the connection has run out of time.
      if reply != 421, let error = CurlFailure.error(code, transfer) { return error }
      switch code {
      case CURLE_LOGIN_DENIED where reply / 100 != 4:
        return DownloadError(
          .logInRefused, "the server refused the log-in (reply \(reply)); check the user name and the password")
      case CURLE_USE_SSL_FAILED:
        return DownloadError(
          .tls, "the server does not offer TLS (reply \(reply)); allow a connection without it, if that is acceptable")
      case CURLE_PARTIAL_FILE where reply / 100 < 4: return shorter(transfer)
      case CURLE_COULDNT_CONNECT, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING:
        if let error = CurlFailure.broken(code, transfer) { return error }
      case CURLE_URL_MALFORMAT:
        return DownloadError(.invalidRequest, "the path of the URL cannot be sent by FTP")
      default: break
      }
      switch reply {
      // Busy, too many connections, a data connection that was not made: temporary by RFC 959 §4.2.1.
      case 400..<500:
        return DownloadError(
          .network, "the server cannot send the file at present (reply \(reply)); a retry may help")
      case 550 where code != CURLE_WEIRD_SERVER_REPLY:
        return DownloadError(
          .fileNotFound, "the server has no such file, or hides it (reply 550): check the path and the log-in")
      case 530, 532, 534:
        return DownloadError(
          .logInRefused, "the server refused the log-in (reply \(reply)); check the user name and the password")
      case 551, 553: return DownloadError(.accessDenied, "the server denies access to the file (reply \(reply))")
      default: break
      }
      switch code {
      case CURLE_WEIRD_SERVER_REPLY, CURLE_FTP_WEIRD_PASS_REPLY, CURLE_FTP_WEIRD_PASV_REPLY, CURLE_FTP_WEIRD_227_FORMAT,
        CURLE_FTP_CANT_GET_HOST, CURLE_FTP_COULDNT_SET_TYPE, CURLE_FTP_PRET_FAILED, CURLE_FTP_COULDNT_RETR_FILE,
        CURLE_REMOTE_ACCESS_DENIED:
        let words = reply > 0 ? " (reply \(reply))" : ""
        return DownloadError(
          .invalidResponse,
          "the server does not speak FTP as expected\(words): \(CurlFailure.text(code)); check host and port")
      default:
        return CurlFailure.other(code, transfer)
      }
    }

    static func sftp(_ code: CURLcode, _ request: SFTPRequest, _ transfer: CurlTransfer) -> DownloadError {
      switch code {
      // There is no TLS: the host key was refused, or the list could not be used.
      case CURLE_PEER_FAILED_VERIFICATION:
        return DownloadError(
          .unknownHostKey,
          "the host key of \(request.origin.host) could not be checked: see \(request.settings.knownHosts.path)")
      case CURLE_LOGIN_DENIED:
        return DownloadError(
          .logInRefused,
          "the server refused the log-in of \(request.user.escaped); check the user name, the password, and the keys of the "
            + "SSH agent")
      case CURLE_REMOTE_FILE_NOT_FOUND:
        return DownloadError(.fileNotFound, "the server has no such file: check the path")
      case CURLE_REMOTE_ACCESS_DENIED:
        return DownloadError(.accessDenied, "the server denies access to the file: check its permissions")
      case CURLE_PARTIAL_FILE: return shorter(transfer)
      case CURLE_COULDNT_CONNECT, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_SSH, CURLE_FAILED_INIT:
        if let error = CurlFailure.error(code, transfer) ?? CurlFailure.broken(code, transfer) { return error }
        return DownloadError(
          .network,
          "the SSH connection failed: \(CurlFailure.text(code)); check that the port belongs to an SSH server; a retry "
            + "may help")
      default: return CurlFailure.error(code, transfer) ?? CurlFailure.other(code, transfer)
      }
    }
  }
#endif
