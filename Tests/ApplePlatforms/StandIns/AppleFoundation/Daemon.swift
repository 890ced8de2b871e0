import Synchronization

/// The process of the system that carries out background transfers while the app does not run. For tests.
///
/// The tasks of a session survive the app. When a session with the same identifier is made again, the daemon gives it its
/// tasks, reports what has happened meanwhile, and then that these were all events.
public final class Daemon: Sendable {
  /// The system's.
  public static let shared = Daemon()

  /// What happened to a task while the app did not run.
  public enum Fate: Sendable {
    /// It still runs.
    case running
    /// Its file has arrived.
    case finished(status: Int, fields: [String: String], content: Data)
    /// It has failed.
    case failed(URLError)
  }

  /// A task of an earlier run of the app.
  public struct Earlier: Sendable {
    /// The task's identifier.
    public var number: Int
    /// What it fetches.
    public var request: URLRequest
    /// Its `taskDescription`.
    public var description: String?
    /// What happened to it.
    public var fate: Fate

    /// A task of an earlier run.
    public init(_ number: Int, _ request: URLRequest, description: String?, _ fate: Fate) {
      self.number = number
      self.request = request
      self.description = description
      self.fate = fate
    }
  }

  private struct State {
    var earlier: [String: [Earlier]] = [:]
    var running: [String: [Int: URLSessionDownloadTask]] = [:]
    var watchers: [String: AsyncStream<URLSessionTask>.Continuation] = [:]
  }

  private let state = Mutex(State())

  /// Gives a session tasks of an earlier run of the app, before the session is made.
  public func setEarlier(_ tasks: [Earlier], of identifier: String) {
    state.withLock { $0.earlier[identifier] = tasks }
  }

  /// The tasks of a session as they begin: by identifier, or by the URL's host for other sessions.
  public func begun(_ name: String) -> AsyncStream<URLSessionTask> {
    let (stream, continuation) = AsyncStream.makeStream(of: URLSessionTask.self)
    state.withLock { $0.watchers[name] = continuation }
    return stream
  }

  /// A task that runs; `nil` after its end.
  public func running(_ number: Int, of identifier: String) -> URLSessionDownloadTask? {
    state.withLock { $0.running[identifier]?[number] }
  }

  func began(_ task: URLSessionTask, of session: URLSession) {
    let watcher = state.withLock { state in
      let identifier = session.configuration.identifier
      if let identifier, let task = task as? URLSessionDownloadTask {
        state.running[identifier, default: [:]][task.taskIdentifier] = task
      }
      return state.watchers[identifier ?? task.originalRequest?.url?.host() ?? ""]
    }
    watcher?.yield(task)
  }

  func forget(_ number: Int, _ identifier: String) {
    state.withLock { _ = $0.running[identifier]?.removeValue(forKey: number) }
  }

  func attach(_ session: URLSession, _ identifier: String) {
    guard let earlier = state.withLock({ $0.earlier.removeValue(forKey: identifier) }) else { return }
    for task in earlier {
      let restored = session.restore(task.number, task.request, description: task.description)
      switch task.fate {
      case .running: break
      case .finished(let status, let fields, let content): restored.finish(status, fields, content)
      case .failed(let error): restored.end(error)
      }
    }
    session.delegateQueue.addOperation {
      session.delegate?.urlSessionDidFinishEvents(forBackgroundURLSession: session)
    }
  }
}
