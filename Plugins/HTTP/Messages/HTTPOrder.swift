#if LIBCURL
  import CCurl
  package import DownpipeCore

  /// What HTTP adds to an order.
  package struct HTTPOrder: ProtocolRequest {
    package var method = Method.get
    package var fields: HeaderFields
    /// What is sent after the head.
    package var body: (any RequestBody)?
    package var signature: Signature?
    var login: Login?
    let version: HTTPSource.HTTPVersion
    let jar: CookieJar?

    init(fields: HeaderFields, version: HTTPSource.HTTPVersion, jar: CookieJar?) {
      self.fields = fields
      self.version = version
      self.jar = jar
    }

    package init(
      _ method: Method, fields: HeaderFields, body: (any RequestBody)? = nil, signature: Signature? = nil,
      version: HTTPSource.HTTPVersion = .automatic
    ) {
      self.init(fields: fields, version: version, jar: nil)
      self.method = method
      self.body = body
      self.signature = signature
    }

    package func makeHandler() -> any ProtocolHandler { HTTPHandler(self) }

    package enum Method: String, Sendable {
      case get = "GET"
      case head = "HEAD"
      case put = "PUT"
      case post = "POST"
      case delete = "DELETE"
    }

    /// A signature of AWS, version 4, which libcurl makes of all fields of the order.
    package struct Signature: Sendable {
      let scope: String
      let keyID: String
      let secret: String

      package init(region: String, service: String, keyID: String, secret: String) {
        scope = "aws:amz:\(region):\(service)"
        self.keyID = keyID
        self.secret = secret
      }
    }

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
      var fields = order.fields
      if order.signature != nil {
        // Proxies may change it, so that it must not be signed.
        if let agent = fields["User-Agent"] { handle.set(CURLOPT_USERAGENT, agent) }
        fields["User-Agent"] = nil
        // libcurl sorts names with their colon: one that begins another one would be signed at the wrong place.
        let names = fields.fields.map { $0.name.lowercased() }
        if let name = names.first(where: { name in names.contains { $0.hasPrefix(name + "-") } }) {
          throw DownloadError(
            .invalidRequest,
            "libcurl cannot sign the field \(name) beside one whose name goes on with “-”: leave one out")
        }
      }
      // With an empty value libcurl would remove a field of its own.
      let lines = fields.fields.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
      transfer.set(CURLOPT_HTTPHEADER, lines, of: handle)
      transfer.loop.closures.add(to: handle)
      sends(in: transfer)
      try prepareMethod(handle)
      if let signature = order.signature {
        // Earlier ones sign few fields, or none at all.
        guard CurlLibrary.version >= 0x07_57_00, handle.set(CURLOPT_AWS_SIGV4, signature.scope) == CURLE_OK else {
          throw DownloadError(.invalidPipeline, "signatures of AWS need libcurl 7.87 or later")
        }
        handle.set(CURLOPT_USERNAME, signature.keyID)
        handle.set(CURLOPT_PASSWORD, signature.secret)
      }
      if let login = order.login {
        handle.set(CURLOPT_USERNAME, login.user)
        handle.set(CURLOPT_PASSWORD, login.password)
        handle.set(CURLOPT_HTTPAUTH, login.schemes.bits)
      }
      order.jar?.join(handle)
    }

    private func prepareMethod(_ handle: EasyHandle) throws(DownloadError) {
      switch order.method {
      case .get where order.body == nil: return
      case .head: handle.set(CURLOPT_NOBODY, 1)
      case .get, .put, .post, .delete: handle.set(CURLOPT_CUSTOMREQUEST, order.method.rawValue)
      }
      guard let body = order.body else { return }
      handle.set(CURLOPT_UPLOAD, 1)
      try handle.require(downpipe_set_upload_size(handle.pointer, curl_off_t(body.byteCount)), "uploads")
      let address = Unmanaged.passUnretained(self).toOpaque()
      downpipe_set_data_callback(handle.pointer, CURLOPT_READFUNCTION) { bytes, size, count, context in
        guard let handler = HTTPHandler.of(context) else { return Int(CURL_READFUNC_ABORT) }
        return handler.send(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
      }
      handle.set(CURLOPT_READDATA, address)
      // libcurl sends a request again if the connection, which was idle before, turns out to be closed.
      downpipe_set_seek(
        handle.pointer,
        { context, offset, origin in
          guard let handler = HTTPHandler.of(context), origin == SEEK_SET else { return CURL_SEEKFUNC_CANTSEEK }
          handler.sent = Int64(offset)
          return CURL_SEEKFUNC_OK
        }, address)
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> HTTPHandler? {
      context.map { Unmanaged<HTTPHandler>.fromOpaque($0).takeUnretainedValue() }
    }
  }

  /// The body of a request, which libcurl reads piece by piece while it sends. It may be read again from the start.
  package protocol RequestBody: Sendable {
    var byteCount: Int64 { get }
    /// Fills the buffer from an offset, on the thread of the transfer.
    /// - Returns: The number of bytes; less than the buffer's only at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int
  }
#endif
