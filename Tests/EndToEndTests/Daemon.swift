#if RPC
  import ChildPipe
  import Downpipe
  import DownpipeTesting
  import Foundation

  #if canImport(Glibc)
    import Glibc
  #elseif canImport(Darwin)
    import Darwin
  #endif

  /// A `downpipe serve` of the same build as these tests, at a port or a socket of its own. It ends with this value.
  final class Daemon: Sendable {
    private struct State: Sendable {
      /// What it has written to its standard output and its standard error.
      var output = ""
      var errors = ""
      /// How many of the two have not ended.
      var openPipes = 2
      /// 128 and the number of the signal if one has ended it; `nil` while it runs.
      var status: Int32?
    }

    /// The folder of its downloads.
    let folder: String
    let place: LocalPlace
    /// The token of clients; `nil` without one.
    let token: String?
    private let process: Process
    private let state: Watched<State>

    /// Starts a daemon, and returns when it listens.
    /// - Parameter trustsClients: Whether URLs of clients may lead to servers of this machine.
    /// - Throws: `DownloadError` with what it has written if it ends before.
    static func start(
      _ folder: String, _ options: [String] = [], at place: String = "0", trustsClients: Bool = true
    ) async throws -> Daemon {
      let process = Process()
      process.executableURL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "downpipe")
      let trust = trustsClients ? ["--trust-clients"] : []
      process.arguments = ["serve", "-d", folder, "--rpc-listen", place] + trust + options
      process.standardInput = FileHandle.nullDevice
      let (output, errors) = (try ChildPipe(), try ChildPipe())
      let state = Watched(State())
      process.terminationHandler = { process in
        let isSignal = process.terminationReason == .uncaughtSignal
        let status = process.terminationStatus + (isSignal ? 128 : 0)
        state.update { $0.status = status }
      }
      try process.run(output: output, errors: errors)
      Self.read(output, state) { $0.output += $1 }
      Self.read(errors, state) { $0.errors += $1 }
      await state.wait { Self.greeting($0.errors) != nil || $0.status != nil }
      guard let greeting = Self.greeting(state.value.errors) else {
        kill(process.processIdentifier, SIGKILL)
        throw DownloadError(.invalidRequest, "downpipe serve does not listen: \(state.value.errors)")
      }
      let port = URL(string: greeting)?.port
      let location = port.map { LocalPlace.port($0) } ?? .unix(String(greeting.dropFirst("unix:".count)))
      let secret = try? String(contentsOfFile: folder + "/.downpipe/rpc-secret", encoding: .utf8)
      let token = options.contains("--rpc-no-secret") ? nil : secret?.trimmingCharacters(in: .whitespacesAndNewlines)
      return Daemon(folder, location, token, process, state)
    }

    private init(
      _ folder: String, _ place: LocalPlace, _ token: String?, _ process: Process, _ state: Watched<State>
    ) {
      self.folder = folder
      self.place = place
      self.token = token
      self.process = process
      self.state = state
    }

    deinit {
      if state.value.status == nil { kill(process.processIdentifier, SIGKILL) }
    }

    private static func read(
      _ pipe: ChildPipe, _ state: Watched<State>, _ add: @escaping @Sendable (inout State, String) -> Void
    ) {
      let reader = pipe.fileHandleForReading
      Thread.detachNewThread {
        while true {
          let chunk = reader.availableData
          if chunk.isEmpty { break }
          state.update { add(&$0, String(decoding: chunk, as: UTF8.self)) }
        }
        state.update { $0.openPipes -= 1 }
      }
    }

    /// Where it says that it listens, once the line is complete.
    private static func greeting(_ errors: String) -> String? {
      let start = "downpipe: listening at "
      let lines = errors.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      return lines.first { $0.hasPrefix(start) }.map { String($0.dropFirst(start.count)) }
    }

    /// What it has written to its standard error so far.
    var errors: String { state.value.errors }

    /// What it has written to its standard output and its standard error, to their ends: call it after ``end(_:)``.
    func everything() async -> String {
      await state.wait { $0.openPipes == 0 }
      return state.value.output + state.value.errors
    }

    /// The number of the process.
    var processIdentifier: Int32 { process.processIdentifier }

    /// The port; 0 at a socket.
    var port: Int { if case .port(let port) = place { port } else { 0 } }

    /// Sends a signal, and waits for the end.
    /// - Returns: the status of the exit, or 128 and the number of the signal that has ended it.
    @discardableResult
    func end(_ signal: Int32) async -> Int32? {
      kill(process.processIdentifier, signal)
      await state.wait { $0.status != nil }
      return state.value.status
    }

    // MARK: Calls

    /// Calls a method with the token, and returns its result.
    /// - Throws: ``RPCRefusal`` for an error.
    @discardableResult
    func call(_ method: String, _ parameters: JSON...) async throws -> JSON {
      let credentials: [JSON] = token.map { [.text("token:" + $0)] } ?? []
      return try await place.call(method, credentials + parameters)
    }

    /// The value of a key of a download.
    func told(_ gid: String, _ key: String) async throws -> String? {
      try await call("aria2.tellStatus", .text(gid), [.text(key)])[key]?.text
    }

    /// Asks until the state of a download is the wanted one.
    func wait(for gid: String, _ state: String) async throws {
      try await until { try await told(gid, "status") == state }
    }

    /// Asks until the answer is right. The limit of the suite ends it.
    func until(_ condition: () async throws -> Bool) async throws {
      while try await !condition() {
        try Task.checkCancellation()
        await Task.yield()
      }
    }
  }

  /// An error of a call.
  struct RPCRefusal: Error, Hashable {
    let code: Int
    let message: String

    init(_ message: String, code: Int = 1) {
      self.code = code
      self.message = message
    }
  }

  extension LocalPlace {
    /// Calls a method, and returns its result.
    /// - Throws: ``RPCRefusal`` for an error.
    func call(_ method: String, _ parameters: [JSON]) async throws -> JSON {
      let request: JSON = ["jsonrpc": "2.0", "id": "test", "method": .text(method), "params": .list(parameters)]
      let reply = try await send("POST", "/jsonrpc", try JSONEncoder().encode(request))
      guard let json = reply.json else {
        throw DownloadError(.invalidResponse, "status \(reply.status): \(String(decoding: reply.body, as: UTF8.self))")
      }
      if let result = json["result"] { return result }
      throw RPCRefusal(json["error"]?["message"]?.text ?? "no message", code: Int(json["error"]?["code"]?.number ?? 0))
    }
  }

  /// A value of JSON.
  enum JSON: Sendable, Hashable {
    case null
    case flag(Bool)
    case number(Double)
    case text(String)
    case list([JSON])
    case object([String: JSON])

    subscript(_ key: String) -> JSON? { if case .object(let members) = self { members[key] } else { nil } }
    var text: String? { if case .text(let text) = self { text } else { nil } }
    var number: Double? { if case .number(let number) = self { number } else { nil } }
    var list: [JSON] { if case .list(let values) = self { values } else { [] } }
    var members: [String: JSON] { if case .object(let members) = self { members } else { [:] } }
  }

  extension JSON: CustomStringConvertible {
    var description: String {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "no JSON"
    }
  }

  extension JSON: Codable {
    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .null
      } else if let value = try? container.decode(Bool.self) {
        self = .flag(value)
      } else if let value = try? container.decode(Double.self) {
        self = .number(value)
      } else if let value = try? container.decode(String.self) {
        self = .text(value)
      } else if let value = try? container.decode([JSON].self) {
        self = .list(value)
      } else {
        self = .object(try container.decode([String: JSON].self))
      }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .null: try container.encodeNil()
      case .flag(let value): try container.encode(value)
      // aria2 reads no exponents and fractions.
      case .number(let value):
        if let integer = Int64(exactly: value) { try container.encode(integer) } else { try container.encode(value) }
      case .text(let value): try container.encode(value)
      case .list(let values): try container.encode(values)
      case .object(let members): try container.encode(members)
      }
    }
  }

  extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
  {
    init(stringLiteral value: String) { self = .text(value) }
    init(integerLiteral value: Int) { self = .number(Double(value)) }
    init(booleanLiteral value: Bool) { self = .flag(value) }
    init(arrayLiteral elements: JSON...) { self = .list(elements) }
    init(dictionaryLiteral elements: (String, JSON)...) { self = .object(Dictionary(elements) { $1 }) }
  }
#endif
