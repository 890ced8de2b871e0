import Dispatch
import DownpipeCore
import Foundation
import Synchronization

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The tasks of a session: Foundation's, or those of a test.
protocol DownloadTasks: Sendable {
  /// Makes the session, which tells the channel of everything, and has its tasks listed.
  func begin(_ channel: BackgroundChannel)
  /// Makes a task with a description and starts it. What it leads to is told later, never from within.
  func start(_ request: URLRequest, description: String) -> Int
  /// Lets a task go on.
  func resume(_ task: Int)
  /// Ends a task.
  func cancel(_ task: Int)
}

/// Does what ``BackgroundTransfers`` says for one session, in order, on one queue.
final class BackgroundChannel: Sendable {
  typealias Timer = @Sendable (DispatchQueue, Duration, @escaping @Sendable () -> Void) -> Void

  private struct State {
    var transfers: BackgroundTransfers
    var openings: [Int: BackgroundOpening] = [:]
  }

  /// What the channel needs beside its tasks.
  struct Options: Sendable {
    /// How long the app's handlers wait for the downloads to take what has arrived.
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

  /// Reads the inbox. Blocks for as long as that takes.
  init(inbox: BackgroundInbox, tasks: any DownloadTasks, options: Options = Options()) {
    self.inbox = inbox
    self.tasks = tasks
    self.options = options
    state = Mutex(State(transfers: BackgroundTransfers(files: inbox.load())))
  }

  // MARK: Events

  /// Takes an event in, soon.
  func tell(_ event: BackgroundTransfers.Event) { queue.async { self.process(event) } }

  /// Takes an event in, and returns when everything that follows from it has been done: a finished file is in safety.
  func tellAndWait(_ event: BackgroundTransfers.Event) { queue.sync { self.process(event) } }

  /// Takes an event in and waits, without holding a thread up.
  func tell(andAwait event: BackgroundTransfers.Event) async {
    await withCheckedContinuation { continuation in
      queue.async {
        self.process(event)
        continuation.resume()
      }
    }
  }

  // MARK: Openings

  /// Waits for the bytes, for as long as the system takes. Cancelling the task cancels the transfer.
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
        return .notKept(task: task, error)
      }
    case .remove(let entry): inbox.remove(entry)
    case .deliver(let number, let outcome):
      let opening = state.withLock { $0.openings.removeValue(forKey: number) }
      let delivery = delivery(outcome)
      // When it has been cancelled in the meantime, the file is let go of here.
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
    // The storage takes the file only; its note is left.
    if isGone { inbox.remove(entry) }
    process(.released(entry: entry, isGone: isGone))
  }
}
