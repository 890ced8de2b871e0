internal import Dispatch

/// Threads for steps that block: hashing, inflating, copying. The cooperative pool has one thread a
/// core, and every transfer needs it.
final class BlockingExecutor: TaskExecutor {
  static let shared = BlockingExecutor()

  private let queue = DispatchQueue(label: "downpipe.steps", attributes: .concurrent)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
