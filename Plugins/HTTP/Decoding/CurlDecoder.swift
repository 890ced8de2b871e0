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
  /// libcurl offers them only for a response. This is one: its head, then the bytes, over a pair of sockets within the
  /// thread. So every coding that libcurl has is decoded by the code that decodes it everywhere, and needs no other
  /// library.
  final class CurlDecoder {
    private let easy: EasyHandle
    private let multi: UnsafeMutableRawPointer
    private let sink: (RawSpan) throws -> Void
    private let coding: String
    /// The end of the pair that libcurl reads from; it closes it. -1 once it has it.
    private var reading: Int32
    private let writing: Int32
    private var failure: (any Error)?
    private var result: CURLcode?

    /// - Parameter sink: Gets the decoded bytes within the calls of ``update(_:)`` and ``finish()``.
    init(_ coding: String, sink: @escaping (RawSpan) throws -> Void) throws {
      guard CurlLibrary.version > 0, let easy = EasyHandle() else { throw CurlLibrary.outOfMemory }
      guard let multi = curl_multi_init() else {
        easy.destroy()
        throw CurlLibrary.outOfMemory
      }
      var pair: [Int32] = [-1, -1]
      #if os(Linux)
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
      #else
        let kind = SOCK_STREAM
      #endif
      guard socketpair(AF_UNIX, kind, 0, &pair) == 0 else {
        let number = errno
        easy.destroy()
        curl_multi_cleanup(multi)
        throw DownloadError(
          number == EMFILE || number == ENFILE ? .tooManyOpenFiles : .processing,
          "the decoder cannot start: \(String(cString: strerror(number)))")
      }
      self.easy = easy
      self.multi = multi
      self.coding = coding
      self.sink = sink
      (reading, writing) = (pair[0], pair[1])
      _ = fcntl(writing, F_SETFL, O_NONBLOCK)
      prepare()
      curl_multi_add_handle(multi, easy.pointer)
      try send("HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nConnection: close\r\n\r\n".utf8Span.span.bytes)
    }

    deinit {
      curl_multi_remove_handle(multi, easy.pointer)
      easy.destroy()
      curl_multi_cleanup(multi)
      close(writing)
      if reading >= 0 { close(reading) }
    }

    private func prepare() {
      let address = Unmanaged.passUnretained(self).toOpaque()
      // Never looked up or connected to.
      easy.set(CURLOPT_URL, "http://127.0.0.1/")
      easy.set(CURLOPT_PROXY, "")
      easy.set(CURLOPT_NOSIGNAL, 1)
      easy.set(CURLOPT_ACCEPT_ENCODING, coding)
      downpipe_set_open_socket(
        easy.pointer,
        { context, _, _ in
          guard let context else { return CURL_SOCKET_BAD }
          return Unmanaged<CurlDecoder>.fromOpaque(context).takeUnretainedValue().takeSocket()
        }, address)
      downpipe_set_connected_socket(easy.pointer)
      downpipe_set_data_callback(easy.pointer, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
        guard let context else { return 0 }
        let decoder = Unmanaged<CurlDecoder>.fromOpaque(context).takeUnretainedValue()
        return decoder.receive(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
      }
      easy.set(CURLOPT_WRITEDATA, address)
    }

    private func takeSocket() -> curl_socket_t {
      defer { reading = -1 }
      return reading
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
      shutdown(writing, Int32(SHUT_WR))
      while result == nil { try turn(waitingFor: 0) }
      try check()
    }

    private func send(_ bytes: RawSpan) throws {
      var rest = bytes
      while rest.byteCount > 0 {
        let sent = rest.withUnsafeBytes { buffer in
          #if os(Linux)
            Glibc.send(writing, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
          #else
            write(writing, buffer.baseAddress, buffer.count)
          #endif
        }
        if sent > 0 {
          rest = rest.extracting(droppingFirst: sent)
        } else if sent < 0, errno != EAGAIN, errno != EINTR {
          // libcurl has closed its end, and says why.
          while result == nil { try turn(waitingFor: 0) }
          return try check()
        }
        try turn(waitingFor: rest.byteCount > 0 ? Int16(POLLOUT) : nil)
      }
    }

    /// Lets libcurl work, and waits for it unless there is more to send at once.
    private func turn(waitingFor events: Int16?) throws {
      var running: Int32 = 0
      curl_multi_perform(multi, &running)
      var left: Int32 = 0
      while let message = curl_multi_info_read(multi, &left) {
        if message.pointee.msg == CURLMSG_DONE { result = message.pointee.data.result }
      }
      if result != nil { return try check() }
      drainRequest()
      guard let events else { return }
      var other = curl_waitfd(fd: writing, events: Int16(CURL_WAIT_POLLOUT), revents: 0)
      curl_multi_poll(multi, &other, events == 0 ? 0 : 1, 1000, nil)
    }

    /// The request is not read.
    private func drainRequest() {
      var buffer = [UInt8](repeating: 0, count: 1024)
      while recv(writing, &buffer, buffer.count, Int32(MSG_DONTWAIT)) > 0 {}
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
