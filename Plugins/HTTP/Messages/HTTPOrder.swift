#if LIBCURL
  import CCurl
  import DownpipeCore

  /// What HTTP adds to an order.
  struct HTTPOrder: ProtocolRequest {
    var fields: HeaderFields
    var login: Login?
    let version: HTTPSource.HTTPVersion
    let jar: CookieJar?

    func makeHandler() -> any ProtocolHandler { HTTPHandler(self) }

    /// How the server may be told who asks.
    struct Login: Sendable {
      let user: String
      let password: String
      let schemes: HTTPSource.PasswordSchemes

      init(user: String, password: String, schemes: HTTPSource.PasswordSchemes) {
        // Digest has the name itself in its field, where a line break would begin another field. Only newer versions of
        // libcurl encode it.
        self.user =
          schemes == .basic || !user.utf8.contains(where: Self.isControl) ? user : Self.withoutControls(user)
        self.password = password
        self.schemes = schemes
      }

      /// Whether the server may be asked twice, so that its first answer is not the answer.
      var mayAskAgain: Bool { schemes != .basic }

      private static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }

      private static func withoutControls(_ user: String) -> String {
        user.unicodeScalars.map { scalar in
          scalar.isASCII && isControl(UInt8(scalar.value))
            ? (scalar.value < 16 ? "%0" : "%") + String(scalar.value, radix: 16, uppercase: true) : String(scalar)
        }.joined()
      }
    }
  }

  extension HTTPHandler {
    /// What libcurl would decide on its own and the engine must decide is off, which is libcurl's default for redirects,
    /// content decoding, repeated attempts, cookies and `.netrc`.
    func prepare(_ handle: EasyHandle, for transfer: CurlTransfer) throws(DownloadError) {
      guard handle.setProtocols("http,https", bits: 0b11) == CURLE_OK else {
        throw DownloadError(.unsupportedURL, "this libcurl was built without HTTP or without HTTPS")
      }
      handle.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
      handle.set(
        CURLOPT_HTTP_VERSION, order.version == .http1Only ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS)
      // With an empty value libcurl would remove a field of its own.
      let lines = order.fields.fields.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
      transfer.set(CURLOPT_HTTPHEADER, lines, of: handle)
      if let login = order.login {
        handle.set(CURLOPT_USERNAME, login.user)
        handle.set(CURLOPT_PASSWORD, login.password)
        handle.set(CURLOPT_HTTPAUTH, login.schemes.bits)
      }
      order.jar?.join(handle)
    }
  }
#endif
