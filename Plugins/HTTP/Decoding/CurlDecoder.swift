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

  /// libcurl's decoders for content codings, for bytes that are there already.
  ///
  /// libcurl offers them only for a response. This is one: its head, then the bytes, over a loopback connection within the
  /// thread. So every coding that libcurl has is decoded by the code that decodes it everywhere, and needs no other
  /// library. (A pair of sockets would do, but libcurl 7.87 and 7.88 connect a socket that is connected.)
  final class CurlDecoder {
    private let easy: EasyHandle
    private let multi: UnsafeMutableRawPointer
    private let sink: (RawSpan) throws -> Void
    private let coding: String
    private let server: LoopbackPair
    private var failure: (any Error)?
    private var result: CURLcode?

    /// - Parameter sink: Gets the decoded bytes within the calls of ``update(_:)`` and ``finish()``.
    init(_ coding: String, sink: @escaping (RawSpan) throws -> Void) throws {
      guard CurlLibrary.version > 0, let easy = EasyHandle() else { throw CurlLibrary.outOfMemory }
      guard let multi = curl_multi_init() else {
        easy.destroy()
        throw CurlLibrary.outOfMemory
      }
      self.easy = easy
      self.multi = multi
      self.coding = coding
      self.sink = sink
      do { server = try LoopbackPair() } catch {
        easy.destroy()
        curl_multi_cleanup(multi)
        throw error
      }
      prepare()
      curl_multi_add_handle(multi, easy.pointer)
      while try !server.accept() { try turn(waits: true) }
      try send("HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nConnection: close\r\n\r\n".utf8Span.span.bytes)
    }

    deinit {
      curl_multi_remove_handle(multi, easy.pointer)
      easy.destroy()
      curl_multi_cleanup(multi)
    }

    private func prepare() {
      let address = Unmanaged.passUnretained(self).toOpaque()
      easy.set(CURLOPT_URL, "http://127.0.0.1:\(server.port)/")
      easy.set(CURLOPT_PROXY, "")
      easy.set(CURLOPT_NOSIGNAL, 1)
      easy.set(CURLOPT_ACCEPT_ENCODING, coding)
      downpipe_set_open_socket(
        easy.pointer,
        { context, _, _ in
          guard let context else { return CURL_SOCKET_BAD }
          return Unmanaged<CurlDecoder>.fromOpaque(context).takeUnretainedValue().server.openClient()
        }, address)
      downpipe_set_data_callback(easy.pointer, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
        guard let context else { return 0 }
        let decoder = Unmanaged<CurlDecoder>.fromOpaque(context).takeUnretainedValue()
        return decoder.receive(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
      }
      easy.set(CURLOPT_WRITEDATA, address)
    }

    private func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
      do {
        if !bytes.isEmpty { try sink(bytes.bytes) }
        return true
      } catch {
        failure = error
        return false
      }
    }

    /// Decodes a block.
    /// - Throws: ``DownloadError`` with `.processing` for bytes that are not of the coding; what the sink throws.
    func update(_ block: RawSpan) throws { try send(block) }

    /// Decodes the end.
    /// - Throws: ``DownloadError`` with `.processing` for bytes that end too early.
    func finish() throws {
      server.end()
      while result == nil { try turn(waits: true) }
      try check()
    }

    private func send(_ bytes: RawSpan) throws {
      var rest = bytes
      while rest.byteCount > 0 {
        let sent = server.send(rest)
        if sent > 0 {
          rest = rest.extracting(droppingFirst: sent)
        } else if sent < 0 {
          // libcurl has closed its end, and says why.
          while result == nil { try turn(waits: true) }
          return try check()
        }
        try turn(waits: false)
      }
    }

    /// Lets libcurl read what was sent.
    private func turn(waits: Bool) throws {
      var running: Int32 = 0
      curl_multi_perform(multi, &running)
      var left: Int32 = 0
      while let message = curl_multi_info_read(multi, &left) {
        if message.pointee.msg == CURLMSG_DONE { result = message.pointee.data.result }
      }
      if result != nil { return try check() }
      // The other end is here: what is sent is there at once.
      if waits { curl_multi_poll(multi, nil, 0, 10, nil) }
    }

    private func check() throws {
      if let failure { throw failure }
      guard let result, result != CURLE_OK else { return }
      throw DownloadError(
        .processing,
        "the file cannot be decoded: its bytes are not complete \(coding) data; keep the content coding to get them")
    }
  }
#endif
