/// Runs one piece of work that may block, such as a step that hashes, inflates or copies, on threads of its own: nothing
/// that another piece does holds it up, nor does it hold up a transfer.
///
/// Each running download has a few at most, and each observer and gate has one, so slots and stages bound the threads. Child
/// tasks of the work use the same threads: of more than ``width`` that block, the others wait.
final class BlockingExecutor: TaskExecutor {
  static let width = 64

  private let queue = BlockingQueue(width: width)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.run { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
  }
}
