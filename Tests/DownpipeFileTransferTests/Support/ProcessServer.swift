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

  /// A listening port on 127.0.0.1, with a thread that accepts connections.
  final class Listener: Sendable {
    let port: Int
    private let descriptor: Int32
    private let isClosed = Atomic(false)

    /// - Parameter accepted: Takes each connection, and closes it in the end. It is called on the thread.
    init(_ accepted: @escaping @Sendable (Int32) -> Void) throws {
      let (descriptor, port) = try Self.listen()
      self.descriptor = descriptor
      self.port = port
      Thread.detachNewThread {
        while true {
          let connection = accept(descriptor, nil, nil)
          if connection < 0 {
            if errno == EINTR || errno == ECONNABORTED { continue }
            return
          }
          _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
          accepted(connection)
        }
      }
    }

    deinit { close() }

    /// Ends the thread. Established connections stay.
    func close() {
      guard !isClosed.exchange(true, ordering: .relaxed) else { return }
      shutdown(descriptor, Int32(SHUT_RDWR))
      Self.close(descriptor)
    }

    private static func close(_ descriptor: Int32) {
      #if canImport(Glibc)
        _ = Glibc.close(descriptor)
      #elseif canImport(Musl)
        _ = Musl.close(descriptor)
      #else
        _ = Darwin.close(descriptor)
      #endif
    }

    /// Listens on a free port of 127.0.0.1.
    static func listen() throws -> (descriptor: Int32, port: Int) {
      #if canImport(Glibc)
        let stream = Int32(SOCK_STREAM.rawValue)
      #else
        let stream = SOCK_STREAM
      #endif
      let descriptor = socket(AF_INET, stream, 0)
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = inet_addr("127.0.0.1")
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let isBound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
          bind(descriptor, address, size) == 0 && getsockname(descriptor, address, &size) == 0
        }
      }
      #if canImport(Glibc)
        let isListening = isBound && Glibc.listen(descriptor, 64) == 0
      #elseif canImport(Musl)
        let isListening = isBound && Musl.listen(descriptor, 64) == 0
      #else
        let isListening = isBound && Darwin.listen(descriptor, 64) == 0
      #endif
      guard isListening else { throw DownloadError(.network, "no free port on 127.0.0.1") }
      return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }
  }

  /// A server program that is started for each connection, with the connection as its standard input and output, as inetd
  /// does it. It listens from the start, and no other program can take its port.
  final class ProcessServer: Sendable {
    private struct State {
      /// By their identifiers.
      var running: [Int32: Process] = [:]
      var count = 0
    }

    private let state = Watched(State())
    private let listener = Mutex<Listener?>(nil)
    let port: Int

    init(_ program: String, _ arguments: [String]) throws {
      guard FileManager.default.isExecutableFile(atPath: program) else {
        throw DownloadError(.invalidRequest, "\(program) is missing: install what .ci/setup --tests names")
      }
      let state = state
      let listener = try Listener { connection in
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        let socket = FileHandle(fileDescriptor: connection, closeOnDealloc: true)
        process.standardInput = socket
        process.standardOutput = socket
        process.standardError = FileHandle.nullDevice
        process.terminationHandler = { ended in
          state.update { $0.running[ended.processIdentifier] = nil }
        }
        do { try process.run() } catch { return }
        state.update { state in
          state.count += 1
          if process.isRunning { state.running[process.processIdentifier] = process }
        }
        try? socket.close()
      }
      port = listener.port
      self.listener.withLock { $0 = listener }
    }

    deinit { end() }

    /// The number of connections so far.
    var connectionCount: Int { state.value.count }

    /// Kills the programs of all connections. New ones are served.
    func killAll() {
      for id in Self.family(of: Set(state.value.running.keys)) { kill(id, SIGKILL) }
    }

    /// The processes, and on Linux those that they have started: sshd sends files from a process of its own.
    private static func family(of processes: Set<Int32>) -> Set<Int32> {
      var parents: [Int32: Int32] = [:]
      for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
        guard let id = Int32(name), let bytes = FileManager.default.contents(atPath: "/proc/\(name)/stat") else {
          continue
        }
        // The name in parentheses may have any characters.
        let fields = String(decoding: bytes, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
        if fields.count > 1 { parents[id] = Int32(fields[1]) }
      }
      var family = processes
      while true {
        let children = parents.filter { family.contains($0.value) && !family.contains($0.key) }.keys
        if children.isEmpty { return family }
        family.formUnion(children)
      }
    }

    /// Ends the server and its programs.
    func end() {
      listener.withLock {
        $0?.close()
        $0 = nil
      }
      killAll()
    }
  }

  /// Runs a program to its end.
  struct Program {
    let status: Int32
    let output: String

    /// - Parameter started: Gets the identifier of the process.
    init(
      _ program: String, _ arguments: [String], environment: [String: String] = [:],
      started: (Int32) -> Void = { _ in }
    ) async throws {
      let process = Process()
      process.executableURL = URL(filePath: program.hasPrefix("/") ? program : "/usr/bin/env")
      process.arguments = program.hasPrefix("/") ? arguments : [program] + arguments
      process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
      let folder = try TemporaryFolder()
      _ = FileManager.default.createFile(atPath: folder.path("output"), contents: nil)
      let file = try FileHandle(forWritingTo: URL(filePath: folder.path("output")))
      process.standardInput = FileHandle.nullDevice
      process.standardOutput = file
      process.standardError = file
      let hasEnded = Watched(false)
      process.terminationHandler = { _ in hasEnded.update { $0 = true } }
      try process.run()
      started(process.processIdentifier)
      await hasEnded.wait { $0 }
      status = process.terminationStatus
      output = String(decoding: try folder.read("output"), as: UTF8.self)
    }
  }
#endif
