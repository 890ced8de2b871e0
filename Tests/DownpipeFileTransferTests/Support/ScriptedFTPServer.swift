#if LIBCURL
  import DownpipeCore
  import DownpipeTesting
  import Foundation
  import Synchronization

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// A small FTP server that deviates from RFC 959 where its script says so.
  final class ScriptedFTPServer: Sendable {
    /// What the server does. By default it serves one file under every name.
    struct Script: Sendable {
      var greeting: String? = "220 ready\r\n"
      var content: [UInt8] = []
      /// Whether the server only listens after its greeting.
      var isMute = false
      /// The number of the reply to `SIZE`; the size of the content when `nil`.
      var size: Int64?
      /// Answers in place of the usual ones, by command; with `nil` the server stays silent.
      var replies: [String: String?] = [:]
      /// The command after whose reply the server only reads. What comes then is logged as “…”.
      var mutesAfter: String?
      /// The address in replies to `PASV`.
      var passiveHost = "127,0,0,1"
      /// The reply before a body.
      var opening = "150 here it comes\r\n"
      /// Whether `REST` moves the start, and is not only accepted.
      var seeks = true
      /// How many bytes of a body are sent before the server does what `atPause` says.
      var pausesAfter: Int?
      /// Called in the middle of a body: it may block.
      var atPause: @Sendable () -> Void = {}
      /// Whether the connections are closed at the pause.
      var breaksAtPause = false
      /// The reply after a body; silence when `nil`.
      var farewell: String? = "226 done\r\n"
      /// Whether the control connection is closed after a body.
      var closesAfterBody = false
    }

    private let dialogue: Dialogue
    private let listener: Listener
    var port: Int { listener.port }

    init(_ script: Script) throws {
      let dialogue = Dialogue(script)
      self.dialogue = dialogue
      listener = try Listener { descriptor in
        Thread.detachNewThread { dialogue.serve(Connection(descriptor)) }
      }
    }

    func end() { listener.close() }

    /// Changes the script for commands to come.
    func change(_ change: (inout Script) -> Void) { dialogue.script.withLock { change(&$0) } }

    func text(_ path: String = "file.bin") -> String { "ftp://127.0.0.1:\(port)/\(path)" }
    func url(_ path: String = "file.bin") throws -> URL { try DownloadRequest(text(path), id: "").url }

    /// The commands of all connections so far.
    var commands: [String] { dialogue.log.value }

    /// Waits until a command has come.
    func until(_ condition: @escaping @Sendable ([String]) -> Bool) async {
      await dialogue.log.wait(until: condition)
    }
  }

  /// What the connections of a scripted server have in common.
  private final class Dialogue: Sendable {
    let script: Mutex<ScriptedFTPServer.Script>
    let log = Watched<[String]>([])

    init(_ script: ScriptedFTPServer.Script) { self.script = Mutex(script) }

    func serve(_ connection: Connection) {
      defer { connection.close() }
      guard let greeting = script.withLock(\.greeting) else { return connection.waitForEnd() }
      connection.send(greeting)
      var start = 0
      var data: (descriptor: Int32, port: Int)?
      defer { if let data { _ = Connection.close(data.descriptor) } }
      while let line = connection.readLine() {
        log.update { $0.append(line) }
        let script = script.withLock { $0 }
        if script.isMute { continue }
        let command = String(line.prefix { $0 != " " }).uppercased()
        if let reply = script.replies[command] {
          guard let reply else { return connection.waitForEnd() }
          connection.send(reply)
          if command == script.mutesAfter {
            if connection.readSome() { log.update { $0.append("…") } }
            return connection.waitForEnd()
          }
          continue
        }
        switch command {
        case "USER": connection.send("331 password\r\n")
        case "PASS": connection.send("230 welcome\r\n")
        case "PWD": connection.send("257 \"/\" is here\r\n")
        case "CWD", "TYPE", "PBSZ", "PROT": connection.send("200 good\r\n")
        case "MDTM": connection.send("213 20200102030405\r\n")
        case "SIZE": connection.send("213 \(script.size ?? Int64(script.content.count))\r\n")
        case "EPSV":
          data = try? Listener.listen()
          connection.send("229 extended (|||\(data?.port ?? 0)|)\r\n")
        case "PASV":
          data = try? Listener.listen()
          let port = data?.port ?? 0
          connection.send("227 passive (\(script.passiveHost),\(port / 256),\(port % 256))\r\n")
        case "REST":
          start = Int(line.dropFirst(5)) ?? 0
          connection.send("350 restarting\r\n")
        case "RETR":
          guard let listening = data else { return }
          data = nil
          connection.send(script.opening)
          guard send(script, from: script.seeks ? start : 0, over: listening.descriptor) else { return }
          guard let farewell = script.farewell else { return connection.waitForEnd() }
          connection.send(farewell)
          if script.closesAfterBody { return }
          start = 0
        case "QUIT":
          return connection.send("221 bye\r\n")
        default: connection.send("502 unknown\r\n")
        }
      }
    }

    /// - Returns: Whether the control connection stays open.
    private func send(_ script: ScriptedFTPServer.Script, from start: Int, over listening: Int32) -> Bool {
      let descriptor = accept(listening, nil, nil)
      _ = Connection.close(listening)
      guard descriptor >= 0 else { return false }
      let body = Connection(descriptor)
      defer { body.close() }
      let bytes = script.content.dropFirst(start)
      guard let pause = script.pausesAfter, pause < bytes.count else {
        body.send(Array(bytes))
        return true
      }
      body.send(Array(bytes.prefix(pause)))
      script.atPause()
      if script.breaksAtPause { return false }
      body.send(Array(bytes.dropFirst(pause)))
      return true
    }
  }

  /// A connected socket, used on one thread.
  final class Connection {
    private let descriptor: Int32
    private var received: [UInt8] = []

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    func close() { _ = Self.close(descriptor) }

    static func close(_ descriptor: Int32) -> Int32 {
      #if canImport(Glibc)
        Glibc.close(descriptor)
      #elseif canImport(Musl)
        Musl.close(descriptor)
      #else
        Darwin.close(descriptor)
      #endif
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    @discardableResult func send(_ bytes: [UInt8]) -> Bool {
      #if os(Linux)
        let flags = Int32(MSG_NOSIGNAL)
      #else
        let flags: Int32 = 0
      #endif
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { Self.send(descriptor, $0.baseAddress, $0.count, flags) }
        guard count > 0 else { return false }
        rest = rest.dropFirst(count)
      }
      return true
    }

    private static func send(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
      #if canImport(Glibc)
        Glibc.send(descriptor, bytes, count, flags)
      #elseif canImport(Musl)
        Musl.send(descriptor, bytes, count, flags)
      #else
        Darwin.send(descriptor, bytes, count, flags)
      #endif
    }

    /// Returns the next line without its end; `nil` at the end of the connection.
    func readLine() -> String? {
      while true {
        if let end = received.firstIndex(of: 0x0A) {
          let line = received[..<end].filter { $0 != 0x0D }
          received.removeSubrange(...end)
          return String(decoding: line, as: UTF8.self)
        }
        guard let bytes = read() else { return nil }
        received += bytes
      }
    }

    /// Waits for bytes, and drops them; `false` at the end of the connection.
    func readSome() -> Bool { !received.isEmpty || read() != nil }

    /// Reads, and says nothing, until the other side closes the connection.
    func waitForEnd() { while read() != nil {} }

    /// Passes everything on, and the end: each direction ends its half.
    func relay(to other: Connection) {
      if !received.isEmpty { other.send(received) }
      received = []
      while let bytes = read(), other.send(bytes) {}
      shutdown(other.descriptor, Int32(SHUT_WR))
    }

    private func read() -> [UInt8]? {
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = recv(descriptor, &bytes, bytes.count, 0)
      return count > 0 ? Array(bytes[..<count]) : nil
    }
  }
#endif
