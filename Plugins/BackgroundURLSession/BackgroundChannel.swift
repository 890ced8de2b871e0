import Dispatch
import DownpipeCore
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The tasks of a session: Foundation's, or a test's.
protocol DownloadTasks: Sendable {
  /// Creates the session, which reports every event to the channel, and lists its tasks.
  func begin(_ channel: BackgroundChannel)
  /// Creates a task with a description and starts it. Its events are reported later, never during the call.
  func start(_ request: URLRequest, description: String) -> Int
  /// Resumes a task.
  func resume(_ task: Int)
  /// Cancels a task.
  func cancel(_ task: Int)
}

/// Carries out the decisions of ``BackgroundTransfers`` for one session, in order, on one queue.
final class BackgroundChannel: Sendable {
  typealias Timer = @Sendable (DispatchQueue, Duration, @escaping @Sendable () -> Void) -> Void

  private struct State {
    var transfers: BackgroundTransfers
    var openings: [Int: BackgroundOpening] = [:]
  }

  struct Options: Sendable {
    /// How long the app's handlers wait for the downloads to take the files that have arrived.
    var handOverTimeLimit: Duration = .seconds(10)
    var timer: Timer = { queue, time, action in
      queue.asyncAfter(deadline: .now() + .milliseconds(max(0, Int(time / .milliseconds(1)))), execute: action)
    }
    /// Calls the app's handlers, by number.
    var callHandlers: @Sendable ([Int]) -> Void = { _ in }
  }

  private let inbox: BackgroundInbox
  private let tasks: any DownloadTasks
  private let options: Options
  private let queue = DispatchQueue(label: "downpipe.urlsession.background")
  private let numbers = Atomic(0)
  private let state: Mutex<State>

  /// Reads the inbox, which blocks.
  init(inbox: BackgroundInbox, tasks: any DownloadTasks, options: Options = Options()) {
    self.inbox = inbox
    self.tasks = tasks
    self.options = options
    state = Mutex(State(transfers: BackgroundTransfers(files: inbox.load())))
  }

  // MARK: Events

  /// Processes an event asynchronously.
  func tell(_ event: BackgroundTransfers.Event) { queue.async { self.process(event) } }

  /// Processes an event and its effects before it returns: a finished file is then in the inbox.
  func tellAndWait(_ event: BackgroundTransfers.Event) { queue.sync { self.process(event) } }

  /// Processes an event and suspends until its effects are done.
  func tell(andAwait event: BackgroundTransfers.Event) async {
    await withCheckedContinuation { continuation in
      queue.async {
        self.process(event)
        continuation.resume()
      }
    }
  }

  // MARK: Openings

  /// Waits for the finished file, however long the system takes. Cancelling the task cancels the transfer.
  func open(_ opening: BackgroundOpening) async throws -> BackgroundOpening.Delivery {
    let number = numbers.add(1, ordering: .relaxed).newValue
    queue.async {
      self.state.withLock { $0.openings[number] = opening }
      self.process(.open(number, opening.tag))
    }
    return try await withTaskCancellationHandler {
      try await opening.value()
    } onCancel: {
      opening.settle(.failure(CancellationError()))
      queue.async {
        self.process(.abandon(number))
        _ = self.state.withLock { $0.openings.removeValue(forKey: number) }
      }
    }
  }

  // MARK: Effects

  private func process(_ event: BackgroundTransfers.Event) {
    var events = [event]
    while !events.isEmpty {
      let event = events.removeFirst()
      let effects = state.withLock { $0.transfers.handle(event) }
      for effect in effects {
        if let next = perform(effect) { events.append(next) }
      }
    }
  }

  private func perform(_ effect: BackgroundTransfers.Effect) -> BackgroundTransfers.Event? {
    switch effect {
    case .start(let number, let tag):
      guard let opening = state.withLock({ $0.openings[number] }) else { return .abandon(number) }
      return .started(number, task: tasks.start(opening.request, description: tag.text))
    case .resume(let task): tasks.resume(task)
    case .cancel(let task): tasks.cancel(task)
    case .keep(let task, let temporary, let tag, let answer):
      do {
        return .kept(task: task, entry: try inbox.keep(temporary, tag, answer))
      } catch {
        return .notKept(task: task, DownloadError(error, as: .storage))
      }
    case .remove(let entry): inbox.remove(entry)
    case .deliver(let number, let outcome):
      let opening = state.withLock { $0.openings.removeValue(forKey: number) }
      let delivery = delivery(outcome)
      // If the opening was cancelled meanwhile, this releases the file.
      opening?.settle(delivery)
    case .awaitHandOver(let round):
      options.timer(queue, options.handOverTimeLimit) { self.process(.patienceEnded(round: round)) }
    case .callHandlers(let handlers): options.callHandlers(handlers)
    }
    return nil
  }

  private func delivery(_ outcome: BackgroundTransfers.Outcome) -> Result<BackgroundOpening.Delivery, any Error> {
    switch outcome {
    case .file(let entry, let tag, let answer):
      let file = InboxFile(inbox.body(entry)) { isConsumed in
        self.queue.async { self.release(entry, isConsumed: isConsumed) }
      }
      return .success(.file(file, tag, answer))
    case .refusal(let answer, let tag): return .success(.refusal(answer, tag))
    case .failure(let error): return .failure(error)
    }
  }

  private func release(_ entry: String, isConsumed: Bool) {
    let isGone = isConsumed || inbox.size(entry) == nil
    // The storage moves the file only; the note stays behind.
    if isGone { inbox.remove(entry) }
    process(.released(entry: entry, isGone: isGone))
  }
}
