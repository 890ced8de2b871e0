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

  extension EasyHandle {
    /// Sets the options of a transfer that do not depend on its protocol, and then those of the protocol.
    func prepare(for transfer: CurlTransfer, _ settings: CurlSettings) throws(DownloadError) {
      let order = transfer.order
      let address = Unmanaged.passUnretained(transfer).toOpaque()
      set(CURLOPT_PRIVATE, address)
      set(CURLOPT_ERRORBUFFER, UnsafeMutableRawPointer(transfer.message))
      guard set(CURLOPT_URL, order.url) == CURLE_OK else { throw CurlLibrary.outOfMemory }
      // The URL goes out as it was written: its dots were resolved when it was made.
      set(CURLOPT_PATH_AS_IS, 1)
      set(CURLOPT_NOSIGNAL, 1)
      set(CURLOPT_TCP_KEEPALIVE, 1)
      set(CURLOPT_BUFFERSIZE, transfer.loop.receiveBufferBytes)
      downpipe_set_quick_exit(pointer)

      downpipe_set_data_callback(pointer, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
        guard let transfer = CurlTransfer.of(context) else { return 0 }
        let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
        return transfer.handler.receiveHeader(line, of: transfer) ? size * count : 0
      }
      set(CURLOPT_HEADERDATA, address)
      downpipe_set_data_callback(pointer, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
        guard let transfer = CurlTransfer.of(context) else { return 0 }
        return transfer.receiveBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
      }
      set(CURLOPT_WRITEDATA, address)
      let notices = downpipe_set_connected(
        pointer,
        { context, address, _, port, localPort in
          guard let transfer = CurlTransfer.of(context), let address else { return CURL_PREREQFUNC_ABORT }
          let maySend = transfer.connected(ConnectionKey(String(cString: address), port, localPort))
          return maySend ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }, address)
      if notices != CURLE_OK {
        transfer.cannotNoticeConnections()
        // It could not be checked before it is used again.
        set(CURLOPT_FORBID_REUSE, 1)
      }
      if settings.idleConnections <= 0 { set(CURLOPT_FORBID_REUSE, 1) }
      try openSockets(transfer)

      if !order.addresses.isEmpty { transfer.set(CURLOPT_RESOLVE, order.addresses, of: self) }
      prepareTimes(settings, order)
      try prepareProxy(settings.proxy)
      try settings.tls.prepare(self, showsCertificate: order.showsCertificate)
      try transfer.handler.prepare(self, for: transfer)
    }

    /// For an option without which a transfer would be less safe than it was asked to be.
    package func require(_ code: CURLcode, _ what: String) throws(DownloadError) {
      if code != CURLE_OK { throw DownloadError(.invalidPipeline, "this libcurl was built without \(what)") }
    }

    private func prepareTimes(_ settings: CurlSettings, _ order: Order) {
      set(CURLOPT_CONNECTTIMEOUT_MS, settings.connectTimeLimit.wholeMilliseconds)
      if let deadline = order.deadline {
        set(CURLOPT_TIMEOUT_MS, (deadline - .now).wholeMilliseconds)
      }
      if let speed = settings.minimumSpeed {
        set(CURLOPT_LOW_SPEED_LIMIT, speed.bytesPerSecond)
        set(CURLOPT_LOW_SPEED_TIME, max(1, Int(speed.time.components.seconds)))
      }
      set(CURLOPT_MAXAGE_CONN, 60)
    }

    private func prepareProxy(_ setting: HTTPSource.ProxySetting) throws(DownloadError) {
      switch setting.kind {
      case .environment(let schemes): set(CURLOPT_PROXYAUTH, schemes.bits)
      case .none: set(CURLOPT_PROXY, "")
      case .proxy(let proxy, let direct):
        try require(set(CURLOPT_PROXY, proxy.description), "proxies")
        set(CURLOPT_NOPROXY, direct.joined(separator: ","))
        if let credentials = proxy.credentials {
          set(CURLOPT_PROXYUSERNAME, credentials.user)
          set(CURLOPT_PROXYPASSWORD, credentials.password)
          set(CURLOPT_PROXYAUTH, credentials.schemes.bits)
        }
      }
    }

    private func openSockets(_ transfer: CurlTransfer) throws(DownloadError) {
      try require(
        downpipe_set_open_socket(
          pointer,
          { context, _, address in
            guard let address, let transfer = CurlTransfer.of(context) else { return CURL_SOCKET_BAD }
            return transfer.openSocket(&address.pointee)
          }, Unmanaged.passUnretained(transfer).toOpaque()), "sockets of its caller")
      downpipe_set_close_socket(
        pointer,
        { context, socket in
          let connections = context.map { Unmanaged<IdleConnections>.fromOpaque($0).takeUnretainedValue() }
          return SocketClosing.closeSocket(socket, wasIdle: connections?.forget(socket) ?? false)
        }, Unmanaged.passUnretained(transfer.connections).toOpaque())
    }
  }

  extension CurlTransfer {
    static func of(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
      context.map { Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue() }
    }
  }

  extension HTTPSource.PasswordSchemes {
    var bits: Int {
      switch self {
      case .basic: 1 << 0
      case .digest: 1 << 1
      case .any: 0b11
      }
    }
  }

  extension Duration {
    /// For libcurl, to which 0 means no limit.
    package var wholeMilliseconds: Int { Int(min(max(1, (self / .milliseconds(1)).rounded(.up)), 2_000_000_000)) }
  }
#endif
