import DownpipeCore
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Forwards what Foundation reports about a task to its transfer.
final class SessionDelegate: NSObject, URLSessionDataDelegate {
  /// Set once, before the first task. Foundation holds the delegate until the session is invalid, so the session lives
  /// that long.
  let session = Mutex<TransferSession?>(nil)

  private func transfer(of task: URLSessionTask) -> TaskTransfer? {
    session.withLock { $0 }?.transfer(of: task)
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    if let response = response as? HTTPURLResponse { transfer(of: dataTask)?.didReceive(response) }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    transfer(of: dataTask)?.didReceive(data)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
  ) {
    // `Redirects` follows redirects by its own, testable rules.
    completionHandler(nil)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    guard let transfer = self.session.withLock({ $0 })?.remove(task) else { return }
    // On Linux a redirect without a target is not reported as a response, only at the end of the task.
    if error == nil, let response = task.response as? HTTPURLResponse { transfer.didReceive(response) }
    transfer.didComplete(error)
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    let ended = self.session.withLock { $0.take() }
    ended?.didBecomeInvalid()
  }

  #if canImport(FoundationNetworking)
    /// On Linux the only challenge is a 401 with `Basic`, reported after the response and the body. Unanswered, the
    /// task would never end; cancelling it on this thread would deadlock.
    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      transfer(of: task)?.didComplete(nil)
      self.session.withLock { $0 }?.cancel(task)
    }
  #endif
}

#if canImport(FoundationNetworking)
  /// A delegate queue that runs every block immediately on the calling thread, which is libcurl's: it reads no further
  /// before the delegate returns. An ordinary queue accepts chunks without a bound.
  private final class InlineQueue: OperationQueue, @unchecked Sendable {
    // Safe: it adds no state to OperationQueue, which is Sendable.
    override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }
  }
#endif

/// The queue on which Foundation calls the delegate; calls never overlap.
func makeDelegateQueue() -> OperationQueue {
  #if canImport(FoundationNetworking)
    let queue = InlineQueue()
  #else
    let queue = OperationQueue()
  #endif
  queue.maxConcurrentOperationCount = 1
  queue.name = "downpipe.urlsession"
  return queue
}
