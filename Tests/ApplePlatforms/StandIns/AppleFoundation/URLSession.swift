// Apple's URLSession, with the declarations that Downpipe uses and no network:
// https://developer.apple.com/documentation/foundation/urlsession. Tests bring the events of its tasks, and ``Daemon``
// keeps those of background sessions while the app does not run.
//
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import Synchronization

// Unchecked as in Apple's declarations: it is configured by one function before its session exists.
open class URLSessionConfiguration: NSObject, @unchecked Sendable {
  public enum Kind: Sendable { case `default`, ephemeral, background }

  open class var `default`: URLSessionConfiguration { URLSessionConfiguration(.default, nil) }
  open class var ephemeral: URLSessionConfiguration { URLSessionConfiguration(.ephemeral, nil) }
  open class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
    URLSessionConfiguration(.background, identifier)
  }

  /// Not there: for tests.
  public let kind: Kind
  public let identifier: String?
  open var requestCachePolicy: URLRequest.CachePolicy = .useProtocolCachePolicy
  open var timeoutIntervalForRequest: TimeInterval = 60
  open var timeoutIntervalForResource: TimeInterval = 604_800
  open var httpMaximumConnectionsPerHost = 6
  open var httpShouldSetCookies = true
  open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy = .onlyFromMainDocumentDomain
  open var httpCookieStorage: HTTPCookieStorage?
  open var urlCache: URLCache?
  open var isDiscretionary = false
  open var sessionSendsLaunchEvents = true

  private init(_ kind: Kind, _ identifier: String?) {
    self.kind = kind
    self.identifier = identifier
  }
}

public final class URLSession: NSObject, Sendable {
  public enum ResponseDisposition: Int, Sendable {
    case cancel = 0
    case allow = 1
    case becomeDownload = 2
    case becomeStream = 3
  }

  private struct State {
    var delegate: (any URLSessionDelegate)?
    var tasks: [URLSessionTask] = []
    var count = 0
    var isInvalid = false
  }

  public let configuration: URLSessionConfiguration
  public let delegateQueue: OperationQueue
  private let state: Mutex<State>

  public init(
    configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue queue: OperationQueue?
  ) {
    self.configuration = configuration
    delegateQueue = queue ?? OperationQueue()
    state = Mutex(State(delegate: delegate))
    super.init()
    if let identifier = configuration.identifier { Daemon.shared.attach(self, identifier) }
  }

  public var delegate: (any URLSessionDelegate)? { state.withLock { $0.delegate } }

  public func dataTask(with request: URLRequest) -> URLSessionDataTask {
    add { URLSessionDataTask(self, number: $0, request) }
  }

  public func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
    add { URLSessionDownloadTask(self, number: $0, request) }
  }

  private func add<Task: URLSessionTask>(_ make: (Int) -> Task) -> Task {
    state.withLock { state in
      precondition(!state.isInvalid, "Apple's session ends the process")
      state.count += 1
      let task = make(state.count)
      state.tasks.append(task)
      return task
    }
  }

  /// Calls the handler on the delegate queue, with the tasks that have not ended.
  public func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
    let tasks = state.withLock { $0.tasks }.filter { $0.state != .completed }
    delegateQueue.addOperation { completionHandler(tasks) }
  }

  public func invalidateAndCancel() { invalidate(isCancelling: true) }
  public func finishTasksAndInvalidate() { invalidate(isCancelling: false) }

  private func invalidate(isCancelling: Bool) {
    let tasks = state.withLock { state in
      state.isInvalid = true
      return state.tasks
    }
    if isCancelling { for task in tasks { task.cancel() } }
    delegateQueue.addOperation { [self] in
      delegate?.urlSession(self, didBecomeInvalidWithError: nil)
      state.withLock { $0.delegate = nil }
    }
  }

  // MARK: For the daemon

  func restore(_ number: Int, _ request: URLRequest, description: String?) -> URLSessionDownloadTask {
    let task = URLSessionDownloadTask(self, number: number, request)
    task.taskDescription = description
    task.resume()
    state.withLock { state in
      state.tasks.append(task)
      state.count = max(state.count, number)
    }
    return task
  }
}

// Unchecked as in Apple's declarations: its values are in a mutex.
open class URLSessionTask: NSObject, @unchecked Sendable {
  public enum State: Int, Sendable {
    case running = 0
    case suspended = 1
    case canceling = 2
    case completed = 3
  }

  private struct Values {
    var state = URLSessionTask.State.suspended
    var description: String?
    var response: URLResponse?
  }

  public let taskIdentifier: Int
  public let originalRequest: URLRequest?
  /// Not there: for tests.
  public let session: URLSession
  private let values = Mutex(Values())

  fileprivate init(_ session: URLSession, number: Int, _ request: URLRequest) {
    self.session = session
    taskIdentifier = number
    originalRequest = request
  }

  open var currentRequest: URLRequest? { originalRequest }
  open var response: URLResponse? { values.withLock { $0.response } }
  open var state: State { values.withLock { $0.state } }
  open var taskDescription: String? {
    get { values.withLock { $0.description } }
    set { values.withLock { $0.description = newValue } }
  }

  /// Tells the daemon and the test when a task begins.
  open func resume() {
    let isNew = values.withLock { values in
      guard values.state == .suspended else { return false }
      values.state = .running
      return true
    }
    if isNew { Daemon.shared.began(self, of: session) }
  }

  open func cancel() {
    let isNew = values.withLock { values in
      guard values.state == .running || values.state == .suspended else { return false }
      values.state = .canceling
      return true
    }
    if isNew { end(URLError(.cancelled)) }
  }

  // MARK: For tests

  /// The head of the response, without an event.
  public func respond(_ status: Int, _ fields: [String: String], from url: URL? = nil) {
    guard let url = url ?? originalRequest?.url else { return }
    let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
    values.withLock { $0.response = response }
  }

  /// The last event of a task.
  public func end(_ error: (any Error)? = nil) {
    values.withLock { $0.state = .completed }
    if let identifier = session.configuration.identifier { Daemon.shared.forget(taskIdentifier, identifier) }
    session.delegateQueue.addOperation { [self] in
      (session.delegate as? any URLSessionTaskDelegate)?.urlSession(session, task: self, didCompleteWithError: error)
    }
  }
}

public final class URLSessionDataTask: URLSessionTask, @unchecked Sendable {
  /// Not there: reports the head of the response.
  public func receive(_ status: Int, _ fields: [String: String]) {
    respond(status, fields)
    session.delegateQueue.addOperation { [self] in
      guard let response else { return }
      (session.delegate as? any URLSessionDataDelegate)?
        .urlSession(session, dataTask: self, didReceive: response) { disposition in
          precondition(disposition == .allow)
        }
    }
  }

  /// Not there: reports bytes.
  public func receive(_ bytes: Data) {
    session.delegateQueue.addOperation { [self] in
      (session.delegate as? any URLSessionDataDelegate)?.urlSession(session, dataTask: self, didReceive: bytes)
    }
  }
}

public final class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
  /// Not there: reports a finished file, which exists only until the delegate returns, and the end.
  public func finish(_ status: Int, _ fields: [String: String], _ content: Data) {
    respond(status, fields)
    session.delegateQueue.addOperation { [self] in
      let file = FileManager.default.temporaryDirectory.appending(path: "CFNetworkDownload_\(UUID().uuidString).tmp")
      guard FileManager.default.createFile(atPath: file.path(percentEncoded: false), contents: content) else { return }
      (session.delegate as? any URLSessionDownloadDelegate)?
        .urlSession(session, downloadTask: self, didFinishDownloadingTo: file)
      try? FileManager.default.removeItem(at: file)
    }
    end()
  }
}
