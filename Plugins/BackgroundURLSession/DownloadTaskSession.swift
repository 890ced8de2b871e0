import DownpipeCore
import DownpipeURLSession
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The download tasks of one of Foundation's sessions.
///
/// Tested on Linux with an ephemeral session. Only `urlSessionDidFinishEvents(forBackgroundURLSession:)`, which Apple's
/// systems call, is specific to background sessions.
final class DownloadTaskSession: DownloadTasks {
  private struct State {
    var session: URLSession?
    var tasks: [Int: URLSessionDownloadTask] = [:]
  }

  private let configuration: @Sendable () -> URLSessionConfiguration
  private let state = Mutex(State())

  init(_ configuration: @escaping @Sendable () -> URLSessionConfiguration) { self.configuration = configuration }

  func begin(_ channel: BackgroundChannel) {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    queue.name = "downpipe.urlsession.background.delegate"
    let session = URLSession(
      configuration: configuration(), delegate: DownloadTaskDelegate(self, channel), delegateQueue: queue)
    state.withLock { $0.session = session }
    session.getAllTasks { tasks in
      // The delegate reports the end of the other tasks, or has reported it: no opening may wait for them.
      let alive = tasks.filter { $0.state != .completed && $0.state != .canceling }
      self.state.withLock { state in
        for case let task as URLSessionDownloadTask in alive { state.tasks[task.taskIdentifier] = task }
      }
      channel.tell(.listed(alive.map(BackgroundTransfers.TaskReference.init)))
    }
  }

  func start(_ request: URLRequest, description: String) -> Int {
    guard let session = state.withLock({ $0.session }) else { return -1 }
    let task = session.downloadTask(with: request)
    task.taskDescription = description
    state.withLock { $0.tasks[task.taskIdentifier] = task }
    task.resume()
    return task.taskIdentifier
  }

  func resume(_ task: Int) { state.withLock { $0.tasks[task] }?.resume() }

  func cancel(_ task: Int) { state.withLock { $0.tasks[task] }?.cancel() }

  /// Removes a task that has ended.
  fileprivate func forget(_ task: Int) { _ = state.withLock { $0.tasks.removeValue(forKey: task) } }

  /// Ends the session and its tasks. For tests: a background session lives as long as the process.
  func invalidate() { state.withLock { $0.session.take() }?.invalidateAndCancel() }
}

extension BackgroundTransfers.TaskReference {
  fileprivate init(_ task: URLSessionTask) {
    self.init(number: task.taskIdentifier, description: task.taskDescription)
  }
}

/// Forwards what Foundation reports about download tasks to a channel, in order.
private final class DownloadTaskDelegate: NSObject, URLSessionDownloadDelegate {
  private let tasks: DownloadTaskSession
  private let channel: BackgroundChannel

  init(_ tasks: DownloadTaskSession, _ channel: BackgroundChannel) {
    self.tasks = tasks
    self.channel = channel
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    guard let response = downloadTask.response as? HTTPURLResponse else { return }
    let url = response.url ?? downloadTask.currentRequest?.url
    let answer = FinishedAnswer(
      status: response.statusCode, headers: HeaderFields(response), url: url?.absoluteString ?? "")
    // Foundation deletes the file when this returns.
    channel.tellAndWait(
      .finished(
        BackgroundTransfers.TaskReference(downloadTask), answer, temporary: location.path(percentEncoded: false)))
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    tasks.forget(task.taskIdentifier)
    channel.tellAndWait(.completed(task: task.taskIdentifier, error.map { DownloadError(transport: $0) }))
  }

  func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
    channel.tell(.eventsDelivered)
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    channel.tell(
      .invalidated(error.map { DownloadError(transport: $0) } ?? DownloadError(.shutDown, "the session was ended")))
  }
}
