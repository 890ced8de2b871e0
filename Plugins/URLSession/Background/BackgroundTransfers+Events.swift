import DownpipeCore

extension BackgroundTransfers {
  /// What happened.
  enum Event {
    /// A source uses the session from now on.
    case attached
    /// The source was stopped: nobody takes files any more. The system's tasks go on.
    case detached
    /// The tasks that the session had when it was made.
    case listed([TaskReference])
    /// Somebody asks for bytes.
    case open(Int, TransferTag)
    /// Who asked does not want them any more.
    case abandon(Int)
    /// A task was made and started for an opening.
    case started(Int, task: Int)
    /// A task has put its body into a temporary file, which is gone once this event has been dealt with.
    case finished(TaskReference, FinishedAnswer, temporary: String)
    /// The file is in the inbox, under a name.
    case kept(task: Int, entry: String)
    /// It could not be moved there.
    case notKept(task: Int, DownloadError)
    /// A task is at its end; of one that went well, `finished` was told before.
    case completed(task: Int, DownloadError?)
    /// Nobody holds a handed-over file any more. It is gone when it was taken, read or discarded.
    case released(entry: String, isGone: Bool)
    /// The system has told everything that happened while the app was not running.
    case eventsDelivered
    /// The app has brought a completion handler.
    case handlerRegistered(Int)
    /// The time for handing over is up.
    case patienceEnded(round: Int)
    /// The session is of no use any more.
    case invalidated(DownloadError)
  }

  /// What is to be done, in this order.
  enum Effect: Equatable {
    case start(Int, TransferTag)
    /// Let a task that was found go on, should it not be running.
    case resume(task: Int)
    case cancel(task: Int)
    /// Move the temporary file into the inbox, at once, and tell `kept` or `notKept`.
    case keep(task: Int, temporary: String, TransferTag, FinishedAnswer)
    /// Delete a file of the inbox.
    case remove(entry: String)
    case deliver(Int, Outcome)
    /// Tell `patienceEnded` after the time for handing over.
    case awaitHandOver(round: Int)
    /// Call the app's handlers, on the main thread.
    case callHandlers([Int])
  }

  /// What an opening gets.
  enum Outcome: Equatable {
    case file(entry: String, TransferTag, FinishedAnswer)
    /// An answer without bytes of the file.
    case refusal(FinishedAnswer, TransferTag)
    case failure(DownloadError)
  }

  /// A task as the system shows it.
  struct TaskReference: Hashable, Sendable {
    var number: Int
    var description: String?
  }
}
