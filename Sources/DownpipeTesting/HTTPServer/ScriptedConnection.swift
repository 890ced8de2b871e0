import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// One connection of a scripted server: reads the head of a request, carries out the steps of the script, and reads the
/// next request.
///
/// It uses no HTTP library, because it must be able to send malformed messages. All code runs on the server's thread.
final class ScriptedConnection {
  private enum Waiting {
    /// For the rest of a request.
    case request
    /// For the client, which has to read the rest of a piece. The bytes of a limited reply are followed by a pause.
    case client(rest: ArraySlice<UInt8>, pause: Duration?, stall: ContinuousClock.Instant?)
    case time(ContinuousClock.Instant)
    case gate
  }

  private static let maximumHeadSize = 256 * 1024
  private static let pieceSize = 128 * 1024
  private static let stallTime = Duration.milliseconds(200)
  private static let endOfHead: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]

  private let number: Int
  private let shared: ScriptedHTTPServer.Shared
  private let inbox: ServerInbox
  private let client: String
  private let socket: ServerSocket
  private(set) var isClosed = false
  private var waiting = Waiting.request
  private var received: [UInt8] = []
  private var steps: ArraySlice<ScriptedReply.Step> = []
  /// The request whose reply is being sent.
  private var request: ScriptedRequest?
  private var bytesPerSecond: Int?
  /// The end of the last pause of a limited reply. The next one is counted from here, because the system wakes late.
  private var paced = ContinuousClock.now
  /// Whether the client wants no further reply.
  private var isLast = false
  /// The remaining size of the request's body, which is read and dropped.
  private var unread = 0

  init(_ socket: ServerSocket, number: Int, shared: ScriptedHTTPServer.Shared, inbox: ServerInbox) {
    (self.socket, self.number, self.shared, self.inbox) = (socket, number, shared, inbox)
    client = socket.peer
  }

  var descriptor: Int32 { socket.descriptor }

  /// The events of poll(2) that it waits for.
  var events: Int16 {
    guard case .client = waiting else { return Int16(POLLIN) }
    return Int16(POLLIN | POLLOUT)
  }

  /// When it goes on by itself.
  var due: ContinuousClock.Instant? {
    switch waiting {
    case .request, .gate: nil
    case .client(_, _, let stall): stall
    case .time(let time): time
    }
  }

  /// Reads or writes after events of poll(2). An end or an error of the connection can be read.
  func arrived(_ events: Int16) {
    if events & Int16(POLLOUT) != events { receive() }
    if events & Int16(POLLOUT) != 0, case .client(let rest, let pause, _) = waiting, !isClosed {
      if send(rest, pause) { advance() }
    }
  }

  func gateIsOpen() {
    if case .gate = waiting { advance() }
  }

  /// Goes on with what is due.
  func proceed(at now: ContinuousClock.Instant) {
    guard let due, due <= now, !isClosed else { return }
    if case .client(let rest, let pause, _) = waiting {
      shared.stalled()
      waiting = .client(rest: rest, pause: pause, stall: nil)
    } else {
      advance()
    }
  }

  /// Closes the socket, and says so.
  func end() {
    isClosed = true
    socket.end()
    shared.disconnected()
    if let request { shared.onLoss(request) }
  }

  private func receive() {
    guard let bytes = socket.receive() else { return isClosed = true }
    received += bytes
    if received.count > Self.maximumHeadSize { isClosed = true }
    if case .request = waiting, !isClosed { advance() }
  }

  private func skipBody() {
    let skipped = min(unread, received.count)
    received.removeFirst(skipped)
    unread -= skipped
  }

  /// Reads the next request, and asks the script for its steps; `false` if a part of it is missing.
  private func readRequest() -> Bool {
    skipBody()
    guard unread == 0, let end = received.firstRange(of: Self.endOfHead) else { return false }
    let head = Array(received[..<end.lowerBound])
    received.removeFirst(end.upperBound)
    guard let request = ScriptedRequest.parse(head: head, from: client, connection: number, number: shared.count) else {
      isClosed = true
      return false
    }
    unread = max(0, request.headers["Content-Length"].flatMap { Int($0) } ?? 0)
    self.request = request
    bytesPerSecond = nil
    shared.received(request)
    steps = shared.script(request).steps[...]
    isLast = request.headers["Connection"]?.caseInsensitivelyEquals("close") == true
    return true
  }

  /// Carries out steps until one has to wait, or until other connections have a turn.
  private func advance() {
    var left = Self.pieceSize
    while !isClosed {
      guard left > 0 || steps.isEmpty else { return waiting = .time(.now) }
      guard let step = steps.popFirst() else {
        request = nil
        if isLast {
          // Bytes that have not been read when it is closed would make the system drop those that have not been sent.
          skipBody()
          if unread == 0 { return isClosed = true }
        } else if readRequest() {
          continue
        }
        return waiting = .request
      }
      switch step {
      case .head(let status, let headers): if !send(ScriptedReply.render(status, headers), &left) { return }
      case .bytes(let bytes): if !sendPiece(.bytes(bytes), 0..<Int64(bytes.count), &left) { return }
      case .content(let content, let range):
        if !sendPiece(content, range.clamped(to: 0..<content.size), &left) { return }
      case .delay(let duration): return waiting = .time(.now + duration)
      case .throttle(let rate): (bytesPerSecond, paced) = (max(1, rate), .now)
      case .hold(let gate):
        waiting = .gate
        return gate.pass { [weak inbox, number] in inbox?.post(.gateIsOpen(connection: number)) }
      case .call(let body): body()
      case .close: isClosed = true
      case .reset:
        socket.resetWhenClosed()
        isClosed = true
      }
    }
  }

  /// Sends a piece of a content and inserts the rest as the next step; `false` if it has to wait.
  private func sendPiece(_ content: ScriptedContent, _ range: Range<Int64>, _ left: inout Int) -> Bool {
    // A throttled body is sent in portions of a twentieth of a second.
    let limit = bytesPerSecond.map { max(1, $0 / 20) } ?? Self.pieceSize
    let end = min(range.upperBound, range.lowerBound + Int64(min(limit, Self.pieceSize)))
    if end < range.upperBound { steps = [.content(content, end..<range.upperBound)] + steps }
    return send(content.bytes(in: range.lowerBound..<end), &left)
  }

  private func send(_ bytes: [UInt8], _ left: inout Int) -> Bool {
    guard !bytes.isEmpty else { return true }
    left -= bytes.count
    return send(bytes[...], bytesPerSecond.map { .seconds(1) * bytes.count / $0 })
  }

  /// Sends what the client takes, and waits for it to take the rest, or for the pause; `false` if it has to wait.
  private func send(_ bytes: ArraySlice<UInt8>, _ pause: Duration?) -> Bool {
    guard let count = socket.send(bytes) else {
      isClosed = true
      return false
    }
    if count > 0 { shared.sent(count) }
    if count < bytes.count {
      waiting = .client(rest: bytes.dropFirst(count), pause: pause, stall: .now + Self.stallTime)
    } else if let pause {
      // What a client has not taken for a while is not sent faster afterwards.
      paced = max(paced, .now - Self.stallTime) + pause
      waiting = .time(paced)
    } else {
      return true
    }
    return false
  }
}
