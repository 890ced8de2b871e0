import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What the server sends.
struct AnswerScript: Sendable {
  enum Ending: Sendable {
    /// Closes the connection after each answer.
    case close
    /// Waits for another request on the connection.
    case idle(milliseconds: Int32)
  }

  /// The pieces of each answer. The last answer is repeated.
  var answers: [[[UInt8]]] = []
  var ending = Ending.close
  /// The time between two pieces, in microseconds.
  var pause: UInt32 = 200
  /// The number of the next answer.
  var next = 0
}

/// A server on the loopback interface that answers each request with the next bytes of its script.
final class AnswerServer: Sendable {
  let port: Int
  private let listener: CInt
  private let script = Mutex(AnswerScript())
  private let open = Atomic<Int>(0)

  /// The connections that are open at the server's side.
  var openConnections: Int { open.load(ordering: .relaxed) }
  var url: String { "http://127.0.0.1:\(port)/file" }

  init?() {
    signal(SIGPIPE, SIG_IGN)
    #if canImport(Darwin)
      listener = socket(AF_INET, SOCK_STREAM, 0)
    #else
      listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 256) == 0 && getsockname(listener, $0, &length) == 0
      }
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    guard isBound else { return nil }
    Thread { [self] in acceptAll() }.start()
  }

  func serve(_ new: AnswerScript) { script.withLock { $0 = new } }

  private func acceptAll() {
    while true {
      let connection = accept(listener, nil, nil)
      if connection < 0 { continue }
      open.add(1, ordering: .relaxed)
      let thread = Thread { [self] in
        answer(connection)
        close(connection)
        open.subtract(1, ordering: .relaxed)
      }
      thread.stackSize = 256 * 1024
      thread.start()
    }
  }

  private func answer(_ connection: CInt) {
    var one: CInt = 1
    setsockopt(connection, CInt(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<CInt>.size))
    _ = fcntl(connection, F_SETFL, O_NONBLOCK)
    var wait: Int32 = 2000
    while readRequest(connection, wait) {
      let (pieces, ending, pause) = script.withLock { script in
        let pieces = script.answers.isEmpty ? [] : script.answers[min(script.next, script.answers.count - 1)]
        script.next += 1
        return (pieces, script.ending, script.pause)
      }
      for (number, piece) in pieces.enumerated() {
        // The client should see the pieces one by one.
        if number > 0 { usleep(pause) }
        guard send(piece, connection) else { return }
      }
      guard case .idle(let milliseconds) = ending else { break }
      wait = milliseconds
    }
    shutdown(connection, CInt(SHUT_WR))
  }

  private func readRequest(_ connection: CInt, _ milliseconds: Int32) -> Bool {
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while !text.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      var waiting = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
      guard poll(&waiting, 1, milliseconds) == 1 else { return false }
      let count = recv(connection, &buffer, buffer.count, 0)
      guard count > 0 else { return false }
      text += buffer[..<count]
    }
    return true
  }

  /// Gives up when the client takes nothing for two seconds.
  private func send(_ bytes: [UInt8], _ connection: CInt) -> Bool {
    var start = 0
    while start < bytes.count {
      var waiting = pollfd(fd: connection, events: Int16(POLLOUT), revents: 0)
      guard poll(&waiting, 1, 2000) == 1 else { return false }
      let count = bytes[start...].withUnsafeBytes { write(connection, $0.baseAddress, $0.count) }
      guard count > 0 else { return false }
      start += count
    }
    return true
  }
}
