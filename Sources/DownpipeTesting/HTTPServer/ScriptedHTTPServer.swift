import DownpipeCore
public import Foundation
import Synchronization

/// An HTTP/1.1 server on a loopback port whose responses a script decides: correct, malformed or none.
///
/// ```swift
/// let server = try await ScriptedHTTPServer.start { request in
///   request.number == 1 ? .status(503, retryAfter: .seconds(1)) : .file(.pattern(size: 1 << 20), for: request)
/// }
/// let url = server.url("/file.bin")
/// // …
/// await server.shutdown()
/// ```
/// It runs on its own thread. Bodies are generated while they are sent, one piece at a time, and a client that does not
/// read stops the server's sending, as with a real server.
public final class ScriptedHTTPServer: Sendable {
  /// Returns the reply to a request. It is called on the server's thread, so it must not block.
  public typealias Script = @Sendable (ScriptedRequest) -> ScriptedReply

  /// What the server has received and sent so far.
  public struct Activity: Sendable {
    /// The latest 10,000 requests, oldest first.
    public internal(set) var requests: [ScriptedRequest] = []
    /// The number of requests received.
    public internal(set) var requestCount = 0
    /// The number of connections accepted.
    public internal(set) var connections = 0
    /// The number of open connections.
    public internal(set) var openConnections = 0
    /// The number of bytes passed to the operating system.
    public internal(set) var bytesSent: Int64 = 0
    /// How often a client read nothing for a fifth of a second while there were bytes to send.
    public internal(set) var stalls = 0
  }

  fileprivate struct State {
    var activity = Activity()
    var numbers: [String: Int] = [:]
    var watchers: [Int: (condition: @Sendable (Activity) -> Bool, continuation: CheckedContinuation<Void, Never>)] =
      [:]
    var nextWatcher = 0
    var isShutDown = false
  }

  private static let loggedRequests = 10_000

  /// The address that the server listens on.
  public let host: String
  /// The TCP port that the server listens on.
  public let port: Int
  private let shared: Shared
  private let inbox: ServerInbox

  /// State that the connections share.
  final class Shared: Sendable {
    fileprivate let state = Mutex(State())
    let script: Script
    /// Whether the thread has ended.
    let hasEnded = Monitor(false)
    /// Called when a connection ends during a reply.
    let onLoss: @Sendable (ScriptedRequest) -> Void

    init(script: @escaping Script, onLoss: @escaping @Sendable (ScriptedRequest) -> Void) {
      (self.script, self.onLoss) = (script, onLoss)
    }

    /// Counts a connection and returns its number; `nil` when the server is shutting down.
    func connected() -> Int? {
      update { state in
        guard !state.isShutDown else { return nil }
        state.activity.connections += 1
        state.activity.openConnections += 1
        return state.activity.connections
      }
    }

    func disconnected() { update { $0.activity.openConnections -= 1 } }

    /// Counts a request for the path and returns its number.
    func count(_ path: String) -> Int {
      state.withLock { state in
        // A test may request any number of paths; beyond a limit they share one count.
        let key = state.numbers.count < ScriptedHTTPServer.loggedRequests ? path : ""
        state.numbers[key, default: 0] += 1
        return state.numbers[key, default: 1]
      }
    }

    func received(_ request: ScriptedRequest) {
      update { state in
        state.activity.requestCount += 1
        if state.activity.requests.count >= 2 * ScriptedHTTPServer.loggedRequests {
          state.activity.requests.removeFirst(ScriptedHTTPServer.loggedRequests)
        }
        state.activity.requests.append(request)
      }
    }

    func sent(_ bytes: Int) { update { $0.activity.bytesSent += Int64(bytes) } }
    func stalled() { update { $0.activity.stalls += 1 } }

    private func update<R: Sendable>(_ change: (inout State) -> R) -> R {
      let (result, reached) = state.withLock { state in
        let result = change(&state)
        guard !state.watchers.isEmpty else { return (result, [CheckedContinuation<Void, Never>]()) }
        let reached = state.watchers.filter { $0.value.condition(state.activity) }
        for key in reached.keys { state.watchers[key] = nil }
        return (result, reached.values.map(\.continuation))
      }
      for continuation in reached { continuation.resume() }
      return result
    }
  }

  private init(host: String, port: Int, shared: Shared, inbox: ServerInbox) {
    (self.host, self.port, self.shared, self.inbox) = (host, port, shared, inbox)
  }

  /// Starts a server on a free port.
  ///
  /// - Parameters:
  ///   - host: The address of this machine to listen on.
  ///   - sendBuffer: The size of the socket's send buffer in bytes (`SO_SNDBUF`, which Linux doubles); the system's
  ///     default when `nil`.
  ///   - script: Returns the reply to a request.
  /// - Throws: `DownloadError` with `.network` if it cannot listen there.
  public static func start(
    host: String = "127.0.0.1", sendBuffer: Int? = nil, _ script: @escaping Script
  ) async throws -> ScriptedHTTPServer {
    try await start(host: host, port: 0, sendBuffer: sendBuffer, onLoss: { _ in }, script)
  }

  /// Starts a server that tells of connections that its clients end.
  ///
  /// - Parameters:
  ///   - host: The address of this machine to listen on.
  ///   - port: The port; a free one if 0.
  ///   - sendBuffer: The size of the socket's send buffer in bytes; the system's default when `nil`.
  ///   - onLoss: Called on the server's thread with a request whose connection has ended during its reply, also if a step
  ///     of the reply has ended it.
  ///   - script: Returns the reply to a request.
  /// - Throws: `DownloadError` with `.network` if it cannot listen there.
  package static func start(
    host: String, port: Int, sendBuffer: Int? = nil, onLoss: @escaping @Sendable (ScriptedRequest) -> Void,
    _ script: @escaping Script
  ) async throws -> ScriptedHTTPServer {
    let listener = try ServerSocket.listening(host: host, port: port)
    let (shared, inbox) = (Shared(script: script, onLoss: onLoss), try ServerInbox())
    Thread.detachNewThread {
      var thread = ServerThread(listener: listener, inbox: inbox, shared: shared, sendBuffer: sendBuffer)
      thread.run()
      shared.hasEnded.update { $0 = true }
    }
    return ScriptedHTTPServer(host: host, port: listener.port, shared: shared, inbox: inbox)
  }

  /// The URL of a path with a leading slash and an optional query: `"/a?b=c"`.
  public func url(_ path: String = "/") -> URL {
    URL(string: "http://\(host):\(port)\(path)") ?? URL(filePath: "/dev/null")
  }

  /// What the server has received and sent so far.
  public var activity: Activity {
    shared.state.withLock { state in
      var activity = state.activity
      activity.requests = activity.requests.suffix(Self.loggedRequests)
      return activity
    }
  }

  /// The latest 10,000 requests, oldest first.
  public var requests: [ScriptedRequest] { activity.requests }

  /// Waits until the condition holds. It is evaluated after every change of the activity.
  ///
  /// ```swift
  /// try await server.until { $0.openConnections == 0 }
  /// ```
  /// - Parameter condition: Examines the activity. It must not call the server.
  /// - Throws: `CancellationError` when the task is cancelled, for example by the time limit of a test.
  public func until(_ condition: @escaping @Sendable (Activity) -> Bool) async throws {
    let key = shared.state.withLock { state in
      state.nextWatcher += 1
      return state.nextWatcher
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isMet = shared.state.withLock { state in
          if Task.isCancelled || condition(state.activity) { return true }
          state.watchers[key] = (condition, continuation)
          return false
        }
        if isMet { continuation.resume() }
      }
    } onCancel: {
      shared.state.withLock { $0.watchers.removeValue(forKey: key) }?.continuation.resume()
    }
    try Task.checkCancellation()
  }

  /// Closes every connection and ends the server's thread, also in a task that is cancelled. A second call has no effect.
  public func shutdown() async {
    shared.state.withLock { $0.isShutDown = true }
    inbox.post(.end)
    await shared.hasEnded.waitThroughCancellation { $0 }
  }
}

/// Calls `body` with a server, and shuts the server down when `body` returns or throws.
@discardableResult
public func withScriptedServer<R>(
  _ script: @escaping ScriptedHTTPServer.Script, _ body: (ScriptedHTTPServer) async throws -> R
) async throws -> R {
  let server = try await ScriptedHTTPServer.start(script)
  return try await withCleanup {
    await server.shutdown()
  } _: {
    try await body(server)
  }
}
