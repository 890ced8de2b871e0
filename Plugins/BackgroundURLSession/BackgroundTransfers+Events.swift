import DownpipeCore

extension BackgroundTransfers {
  enum Event {
    /// A source starts to use the session.
    case attached
    /// The source was stopped and takes no more files. The system's tasks continue.
    case detached
    /// The tasks that the session had when it was made.
    case listed([TaskReference])
    /// An opening requests bytes.
    case open(Int, TransferTag)
    /// The opening was cancelled.
    case abandon(Int)
    /// A task was made and started for an opening.
    case started(Int, task: Int)
    /// A task has written its body to a temporary file, which the system deletes after this event.
    case finished(TaskReference, FinishedAnswer, temporary: String)
    /// The file is in the inbox, under a name.
    case kept(task: Int, entry: String)
    /// The file could not be moved to the inbox.
    case notKept(task: Int, DownloadError)
    /// A task has ended; `finished` precedes it when the task succeeded.
    case completed(task: Int, DownloadError?)
    /// The last reference to a delivered file was released. It is gone when it was moved, read or discarded.
    case released(entry: String, isGone: Bool)
    /// The system has reported all events from the time when the app was not running.
    case eventsDelivered
    /// The app has registered a completion handler.
    case handlerRegistered(Int)
    /// The hand-over time limit has passed.
    case patienceEnded(round: Int)
    /// The session is invalid.
    case invalidated(DownloadError)
  }

  /// An instruction to the channel, carried out in order.
  enum Effect: Equatable {
    case start(Int, TransferTag)
    /// Resume a task that was found, in case it is suspended.
    case resume(task: Int)
    case cancel(task: Int)
    /// Move the temporary file into the inbox immediately, then report `kept` or `notKept`.
    case keep(task: Int, temporary: String, TransferTag, FinishedAnswer)
    /// Delete a file from the inbox.
    case remove(entry: String)
    case deliver(Int, Outcome)
    /// Report `patienceEnded` after the hand-over time limit.
    case awaitHandOver(round: Int)
    /// Call the app's handlers, on the main thread.
    case callHandlers([Int])
  }

  enum Outcome: Equatable {
    case file(entry: String, TransferTag, FinishedAnswer)
    /// An answer without content of the file.
    case refusal(FinishedAnswer, TransferTag)
    case failure(DownloadError)
  }

  /// A task as the system lists it.
  struct TaskReference: Hashable, Sendable {
    var number: Int
    var description: String?
  }
}
