import DownpipeCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// What the thread of a scripted server does: it waits with poll(2) for the network, for a time, and for other threads.
struct ServerThread {
  let listener: ServerSocket
  let inbox: ServerInbox
  let shared: ScriptedHTTPServer.Shared
  /// The size of the send buffers in bytes; the system's default if `nil`.
  let sendBuffer: Int?
  private var connections: [Int: ScriptedConnection] = [:]
  /// A process without descriptors asks for the next connection later.
  private var acceptsAgain: ContinuousClock.Instant?

  private static let acceptPause = Duration.milliseconds(10)

  init(listener: ServerSocket, inbox: ServerInbox, shared: ScriptedHTTPServer.Shared, sendBuffer: Int?) {
    (self.listener, self.inbox, self.shared, self.sendBuffer) = (listener, inbox, shared, sendBuffer)
  }

  /// Serves until a message ends it, then closes all sockets.
  mutating func run() {
    var isEnding = false
    while !isEnding {
      let numbers = Array(connections.keys)
      let events = wait(for: numbers)
      for (number, events) in zip(numbers, events) where events != 0 { connections[number]?.arrived(events) }
      for message in events[numbers.count] != 0 ? inbox.take() : [] {
        switch message {
        case .gateIsOpen(let number): connections[number]?.gateIsOpen()
        case .end: isEnding = true
        }
      }
      let now = ContinuousClock.now
      for number in numbers { connections[number]?.proceed(at: now) }
      if events[numbers.count + 1] != 0 { accept(at: now) }
      for (number, connection) in connections where isEnding || connection.isClosed {
        connections[number] = nil
        connection.end()
      }
    }
    listener.end()
  }

  /// Waits until there is an event or something is due. Returns the events of the connections, the inbox and the listener.
  private mutating func wait(for numbers: [Int]) -> [Int16] {
    let now = ContinuousClock.now
    if let time = acceptsAgain, time <= now { acceptsAgain = nil }
    var polled: [pollfd] = []
    var due = acceptsAgain
    for connection in numbers.compactMap({ connections[$0] }) {
      polled.append(pollfd(fd: connection.descriptor, events: connection.events, revents: 0))
      if let time = connection.due { due = min(due ?? time, time) }
    }
    polled.append(pollfd(fd: inbox.descriptor, events: Int16(POLLIN), revents: 0))
    // poll(2) ignores negative descriptors.
    polled.append(pollfd(fd: acceptsAgain == nil ? listener.descriptor : -1, events: Int16(POLLIN), revents: 0))
    // In milliseconds, rounded up: rounded down it would look again and again until the time has come.
    let pause = due.map { Int32(min(Double(Int32.max), (max(.zero, $0 - now) / .milliseconds(1)).rounded(.up))) }
    let count = poll(&polled, nfds_t(polled.count), pause ?? -1)
    return polled.map { count > 0 ? $0.revents : 0 }
  }

  private mutating func accept(at now: ContinuousClock.Instant) {
    while let socket = listener.nextConnection() {
      socket.sendAtOnce()
      if let sendBuffer { socket.setSendBuffer(sendBuffer) }
      guard let number = shared.connected() else { continue }
      connections[number] = ScriptedConnection(socket, number: number, shared: shared, inbox: inbox)
    }
    if errno == EMFILE || errno == ENFILE { acceptsAgain = now + Self.acceptPause }
  }
}
