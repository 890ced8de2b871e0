#if LIBCURL
  import CCurl
  import DownpipeCore
  import DownpipeHTTP

  /// What SFTP adds to an order.
  struct SFTPRequest: ProtocolRequest {
    /// The offset of the first byte.
    let start: Int64
    /// Whether only size and time are asked for.
    let asksOnly: Bool
    let user: String
    let password: String?
    let settings: FileTransferSource.SSH
    let origin: Origin

    func makeHandler() -> any ProtocolHandler { SFTPHandler(self) }
  }

  /// Host key, log-in and properties of the file. There are no lines: libcurl's SSH library reads the replies.
  final class SFTPHandler: ProtocolHandler {
    let request: SFTPRequest
    /// Why the host key was refused.
    private var refusal: DownloadError?

    init(_ request: SFTPRequest) { self.request = request }

    var leavesCleanHandle: Bool { false }
    var opensDataConnections: Bool { false }
    var waitsWithinCalls: Bool { true }

    func prepare(_ handle: EasyHandle, for transfer: CurlTransfer) throws(DownloadError) {
      guard handle.setProtocols("sftp", bits: 1 << 5) == CURLE_OK else {
        throw DownloadError(.unsupportedURL, "this libcurl was built without SFTP: install one that has it")
      }
      try handle.require(handle.set(CURLOPT_SSH_KNOWNHOSTS, request.settings.knownHosts.path), "known hosts of SSH")
      let address = Unmanaged.passUnretained(self).toOpaque()
      try handle.require(
        downpipe_set_host_key(
          handle.pointer,
          { _, _, _, match, context in
            guard let context else { return Int32(CURLKHSTAT_REJECT.rawValue) }
            let handler = Unmanaged<SFTPHandler>.fromOpaque(context).takeUnretainedValue()
            return Int32((handler.accepts(match) ? CURLKHSTAT_FINE : CURLKHSTAT_REJECT).rawValue)
          }, address), "known hosts of SSH")
      handle.set(CURLOPT_FILETIME, 1)
      if request.asksOnly { handle.set(CURLOPT_NOBODY, 1) }
      if request.start > 0 { handle.set(CURLOPT_RANGE, "\(request.start)-") }
      handle.set(CURLOPT_HTTPPROXYTUNNEL, 1)
      handle.set(CURLOPT_USERNAME, request.user)
      try prepareLogIn(handle)
      transfer.guardWaits(of: handle)
    }

    /// Without a key libcurl would try files of its own choice, also in the working folder.
    private func prepareLogIn(_ handle: EasyHandle) throws(DownloadError) {
      var methods: Int32 = 0
      if let key = request.settings.privateKey {
        methods |= CURLSSH_AUTH_PUBLICKEY
        handle.set(CURLOPT_SSH_PRIVATE_KEYFILE, key.path)
        if let path = key.publicKeyPath { handle.set(CURLOPT_SSH_PUBLIC_KEYFILE, path) }
        if let passphrase = key.passphrase { handle.set(CURLOPT_KEYPASSWD, passphrase) }
      }
      if request.settings.usesAgent { methods |= CURLSSH_AUTH_AGENT }
      if let password = request.password {
        methods |= CURLSSH_AUTH_PASSWORD | CURLSSH_AUTH_KEYBOARD
        handle.set(CURLOPT_PASSWORD, password)
      }
      guard methods != 0 else {
        throw DownloadError(
          .logInRefused, "there is nothing to log in with: give a password, a private key, or use the SSH agent")
      }
      try handle.require(handle.set(CURLOPT_SSH_AUTH_TYPES, Int(methods)), "the log-in methods of SSH")
    }

    private func accepts(_ match: curl_khmatch) -> Bool {
      let path = request.settings.knownHosts.path
      let origin = request.origin
      switch match {
      case CURLKHMATCH_OK: return true
      case CURLKHMATCH_MISMATCH:
        refusal = DownloadError(
          .changedHostKey,
          "the host key of \(origin.host) is not the one in \(path): another server may have answered. If the key was "
            + "replaced, check its fingerprint with the operator, remove the old key with ssh-keygen -R, and add the new one"
        )
      default:
        let port = origin.port.map { "-p \($0) " } ?? ""
        refusal = DownloadError(
          .unknownHostKey,
          "the host key of \(origin.host) is not in \(path): check its fingerprint with the operator, and add it with "
            + "ssh-keyscan \(port)\(origin.host) >> \(path)")
      }
      return false
    }

    func receiveHeader(_ line: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> Bool { true }

    func bodyBegins(in transfer: CurlTransfer) -> Bool { deliver(in: transfer) }

    private func deliver(in transfer: CurlTransfer, isBehindEnd: Bool = false) -> Bool {
      var file = ResponseHead.FileFacts()
      let modified = transfer.handle?.largeNumber(CURLINFO_FILETIME_T) ?? -1
      if modified >= 0 { file.modified = modified }
      // Of the rest of the file.
      let length = transfer.handle?.largeNumber(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T) ?? -1
      if length >= 0, length <= .max - request.start { file.size = request.start + length }
      file.isBehindEnd = isBehindEnd
      return transfer.deliver(ResponseHead(status: 0, file: file), length: length >= 0 ? length : nil)
    }

    func end(_ result: CURLcode, of transfer: CurlTransfer) -> Result<Void, any Error> {
      if let refusal { return .failure(refusal) }
      if request.asksOnly, result == CURLE_OK {
        _ = deliver(in: transfer)
        return .success(())
      }
      switch result {
      case CURLE_OK where !transfer.hasHead:
        // No byte has come: the range begins at the end, or the file is empty.
        _ = request.start > 0 ? deliver(in: transfer, isBehindEnd: true) : deliverEmpty(transfer)
        return .success(())
      case CURLE_BAD_DOWNLOAD_RESUME where !transfer.hasHead:
        var file = ResponseHead.FileFacts()
        file.isBehindEnd = true
        _ = transfer.deliver(ResponseHead(status: 0, file: file), length: 0)
        return .success(())
      case CURLE_OK: return FileTransferFailure.completeness(transfer)
      default: return .failure(FileTransferFailure.sftp(result, request, transfer))
      }
    }

    private func deliverEmpty(_ transfer: CurlTransfer) -> Bool {
      var file = ResponseHead.FileFacts()
      let modified = transfer.handle?.largeNumber(CURLINFO_FILETIME_T) ?? -1
      if modified >= 0 { file.modified = modified }
      file.size = 0
      return transfer.deliver(ResponseHead(status: 0, file: file), length: 0)
    }
  }
#endif
