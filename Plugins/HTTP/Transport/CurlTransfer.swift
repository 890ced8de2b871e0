#if LIBCURL
  package import CCurl
  import DownpipeCore
  import Foundation

  /// One request and its response on the thread of a thread.
  ///
  /// Until the body is read, a short body is held in memory, so that libcurl finishes with it; a longer one is paused.
  /// Then each chunk goes to the sink from libcurl's own buffer.
  ///
  /// The head of a short body waits for the body, as long as bytes arrive: most small files need one answer of the thread
  /// then, and no second command.
  package final class CurlTransfer {
    /// A body of at most this many bytes is held.
    static let heldBytes = 64 * 1024
    /// The longest rest of a body, in bytes, that is read to use the connection again, and how long that may take.
    private static let drainedBytes = 16 * 1024
    private static let drainTime = Duration.seconds(1)

    enum Phase {
      /// Waiting for the head of the response.
      case asking(CheckedContinuation<ResponseHead, any Error>)
      /// The head was delivered, and the body is not read.
      case holding
      /// Chunks go to the sink.
      case pushing(CurlThread.Reader)
      /// Reads at most this many more bytes and drops them.
      case draining(Int, CheckedContinuation<Void, Never>?)
      case over
    }

    package let order: Order
    let handler: any ProtocolHandler
    /// `nil` once libcurl has finished and the handle was given back.
    package internal(set) var handle: EasyHandle?
    var isAdded = false
    private(set) var isDone = false
    unowned let loop: CurlLoop
    var phase: Phase
    private var outcome: Result<Void, any Error>?
    /// Whether the head was delivered.
    package private(set) var hasHead = false
    /// The bytes of the body so far.
    package private(set) var received: Int64 = 0
    private var held: [UInt8] = []
    /// The head, while it waits for the rest of a short body.
    private var waitingHead: ResponseHead?
    /// The length of the body, when the head states it.
    package private(set) var length: Int64?
    /// Why a callback has ended the transfer. libcurl reports only the consequence.
    private(set) var stopReason: (any Error)?
    var isPaused = false
    var pausedUntil: ContinuousClock.Instant?
    /// When the server last sent something; `nil` while the thread does not wait for it.
    var lastActivity: ContinuousClock.Instant?
    private(set) var drainDeadline: ContinuousClock.Instant?
    var refusal: SocketRefusal?
    package private(set) var isConnected = false
    /// Whether the connection is this transfer's own, and not one that was idle.
    var hasOpenedSocket = false
    /// The idle connection that libcurl has chosen cannot be used.
    private(set) var needsNewConnection = false
    private var connection: ConnectionKey?
    /// The TLS connection; only compared with others, because libcurl may have released it.
    private(set) var tlsConnection: UnsafeRawPointer?
    /// Whether the server has sent the closure alert of TLS.
    package internal(set) var hasClosureAlert = false
    /// Whether a data connection was closed with bytes of the server in it.
    package private(set) var leftBytesUnread = false
    private var waits = WaitGuard()
    /// Where libcurl describes a failure.
    let message = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    /// What libcurl does not copy.
    private var lists: [HeaderList] = []

    init(
      _ order: Order, _ handle: EasyHandle, _ loop: CurlLoop,
      _ continuation: CheckedContinuation<ResponseHead, any Error>
    ) {
      self.order = order
      handler = order.request.makeHandler()
      self.handle = handle
      self.loop = loop
      phase = .asking(continuation)
      message.pointee = 0
    }

    deinit { message.deallocate() }

    /// Whether the handle may serve another transfer: `curl_easy_reset` keeps the table of names of a transfer that has not
    /// run.
    var leavesCleanHandle: Bool { isConnected && order.addresses.isEmpty && handler.leavesCleanHandle }

    var isOver: Bool { if case .over = phase { true } else { false } }

    /// Whether the head waits for the body.
    var awaitsBody: Bool { waitingHead != nil }

    var isDraining: Bool { if case .draining = phase { true } else { false } }

    func prepare() throws(DownloadError) {
      if let handle { try handle.prepare(for: self, settings) }
    }

    var connections: IdleConnections { loop.connections }
    package var settings: CurlSettings { loop.settings }
    /// The host of the URL, for messages.
    package var host: String { URL(string: order.url)?.host(percentEncoded: false) ?? "the server" }
    /// libcurl's description of a failure; empty when it has none.
    package var failureText: String { String(cString: message) }

    /// Sets an option to a list, which lives as long as the transfer.
    package func set(_ option: CURLoption, _ lines: [String], of handle: EasyHandle) {
      let list = HeaderList(lines)
      handle.set(option, list)
      lists.append(list)
    }

    func noteUnreadBytes() { leftBytesUnread = true }

    // MARK: What the protocol reports

    /// Delivers the head.
    /// - Returns: Whether the transfer goes on.
    package func deliver(_ head: ResponseHead, length: Int64?) -> Bool {
      hasHead = true
      self.length = length
      guard case .asking = phase else { return stop(PendingResponse.unwanted) }
      waitingHead = head
      if let length, length <= Int64(Self.heldBytes) { loop.awaitBody(of: order.id) } else { deliverHead() }
      return true
    }

    /// Delivers a head that has waited for its body, without it.
    func deliverHead() {
      guard case .asking(let continuation) = phase, let head = waitingHead else { return }
      waitingHead = nil
      phase = .holding
      continuation.resume(returning: head)
    }

    /// The server has sent something.
    package func noteActivity() { lastActivity = loop.now }

    /// Ends the transfer from a callback, for a reason of which libcurl reports only the consequence.
    package func stop(_ reason: any Error) -> Bool {
      stopReason = stopReason ?? reason
      return false
    }

    // MARK: What other threads ask for

    func read(_ reader: CurlThread.Reader) {
      guard case .holding = phase else { return reader.continuation.resume(throwing: PendingResponse.readTwice) }
      phase = .pushing(reader)
      lastActivity = loop.now
      if !held.isEmpty {
        let bytes = held
        held = []
        do {
          try push(bytes.span.bytes, to: reader)
          // The transfer may have ended, so that no turn of the thread empties the block.
          try pushCollected()
        } catch { return end(error) }
      }
      if let outcome { return settle(outcome) }
      goOn()
    }

    func drain(_ continuation: CheckedContinuation<Void, Never>?) {
      guard case .holding = phase, outcome == nil, canDrain else {
        end(PendingResponse.unwanted)
        continuation?.resume()
        return
      }
      phase = .draining(Self.drainedBytes, continuation)
      drainDeadline = loop.now + Self.drainTime
      held = []
      goOn()
    }

    private var canDrain: Bool { length.map { $0 - received <= Int64(Self.drainedBytes) } ?? true }

    func discard() {
      switch phase {
      // Only what is known to be short.
      case .holding where length != nil: drain(nil)
      case .holding, .pushing: end(PendingResponse.unwanted)
      case .asking, .draining, .over: break
      }
    }

    /// Ends the transfer in any phase.
    func end(_ reason: any Error) {
      isDone = true
      loop.block.drop(self)
      waitingHead = nil
      if case .holding = phase { phase = .over }
      settle(.failure(reason))
    }

    // MARK: What libcurl reports

    /// There is a connection, and the request is about to be sent.
    /// - Returns: Whether it may be sent: over a new connection, or one on which the server has sent nothing since.
    func connected(_ key: ConnectionKey) -> Bool {
      guard order.lease.isValid else { return stop(CancellationError()) }
      if !hasOpenedSocket, !connections.isClean(key) {
        needsNewConnection = true
        return false
      }
      connection = key
      isConnected = true
      tlsConnection = handle.flatMap { UnsafeRawPointer(downpipe_get_tls_connection($0.pointer)) }
      hasClosureAlert = false
      if handler.waitsWithinCalls {
        if !hasOpenedSocket, let socket = connections.socket(of: key) { _ = loop.sockets.add(socket, of: order.id) }
        loop.sockets.keep(key.localPort, of: order.id)
      }
      connections.use(key, by: ObjectIdentifier(self))
      // Another address was refused before this one.
      refusal = nil
      lastActivity = loop.now
      return true
    }

    /// Prepares another attempt, over a connection of its own.
    func retryOverNewConnection() {
      needsNewConnection = false
      handle?.set(CURLOPT_FRESH_CONNECT, 1)
      if let deadline = order.deadline { handle?.set(CURLOPT_TIMEOUT_MS, (deadline - .now).wholeMilliseconds) }
    }

    /// An older libcurl does not tell: the server's silence counts when the time to connect is over.
    func cannotNoticeConnections() { lastActivity = loop.now + settings.connectTimeLimit }

    /// Ends the waits of libcurl that hold up the thread: for the last reply of FTP, for the end of a file of SFTP. Other
    /// transfers, and commands such as a cancellation, would wait as long as the server likes.
    package func guardWaits(of handle: EasyHandle) {
      downpipe_set_progress(
        handle.pointer,
        { context, _, _, _, _ in
          guard let transfer = CurlTransfer.of(context) else { return 1 }
          // An ended transfer waits for nothing.
          return transfer.isDone || transfer.waits.mustEnd(transfer.loop) ? 1 : 0
        }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// - Returns: What a write callback returns.
    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
      if bytes.isEmpty || stopReason != nil { return Self.refused }
      lastActivity = loop.now
      if !hasHead, !handler.bodyBegins(in: self) { return Self.refused }
      if pausedUntil != nil { return pause() }
      switch phase {
      case .holding,
        .asking where waitingHead != nil:
        guard (length ?? 0) <= Int64(Self.heldBytes), held.count + bytes.count <= Self.heldBytes else {
          deliverHead()
          return pause()
        }
        if held.isEmpty, let length { held.reserveCapacity(Int(length)) }
        held.append(contentsOf: bytes)
        received += Int64(bytes.count)
      case .pushing where loop.interrupts(order.id): return pause()
      case .pushing(let reader):
        received += Int64(bytes.count)
        do { try push(bytes.bytes, to: reader) } catch {
          _ = stop(error)
          return Self.refused
        }
      case .draining(let left, let continuation):
        guard bytes.count <= left else {
          _ = stop(PendingResponse.unwanted)
          return Self.refused
        }
        phase = .draining(left - bytes.count, continuation)
      case .asking, .over:
        return Self.refused
      }
      return bytes.count
    }

    /// What a callback returns to end the transfer: neither the number of bytes nor a pause.
    private static let refused = 0

    /// libcurl has finished.
    func finish(_ code: CURLcode) {
      isDone = true
      do { try pushCollected() } catch { _ = stop(error) }
      noteConnection()
      // libcurl may take a connection that was shut down for the end of the file.
      let reason = stopReason ?? (handler.waitsWithinCalls ? loop.sockets.reason(of: order.id) : nil)
      settle(reason.map { .failure($0) } ?? handler.end(code, of: self))
    }

    /// Remembers the socket of a connection that may be used again.
    private func noteConnection() {
      guard let connection, let handle else { return }
      let socket = downpipe_get_socket(handle.pointer)
      connections.release(
        connection, by: ObjectIdentifier(self), keeping: socket == CURL_SOCKET_BAD ? nil : socket,
        isShared: handle.number(CURLINFO_HTTP_VERSION) >= Int(CURL_HTTP_VERSION_2_0))
    }

    // MARK: Ends

    private func settle(_ outcome: Result<Void, any Error>) {
      switch phase {
      case .asking(let continuation):
        if waitingHead != nil { return settleWaiting(outcome, continuation) }
        phase = .over
        if case .failure(let error) = outcome { continuation.resume(throwing: error) }
      case .holding:
        // For the reader, after the bytes that came before it.
        self.outcome = outcome
      case .pushing(let reader):
        phase = .over
        reader.continuation.resume(with: outcome.map { handler.bodyEnd(of: self) })
      case .draining(_, let continuation):
        phase = .over
        continuation?.resume()
      case .over: break
      }
    }

    /// Delivers the head with the whole body; a failed body is for its reader, after the bytes that have come.
    private func settleWaiting(
      _ outcome: Result<Void, any Error>, _ continuation: CheckedContinuation<ResponseHead, any Error>
    ) {
      guard case .success = outcome else {
        deliverHead()
        return self.outcome = outcome
      }
      guard var head = waitingHead.take() else { return }
      head.body = (held, handler.bodyEnd(of: self))
      held = []
      phase = .over
      continuation.resume(returning: head)
    }
  }
#endif
