internal import Dispatch

/// Runs blocking steps, such as hashing, inflating and copying, on threads of their own: the cooperative pool has one
/// thread per core, and every transfer needs it.
final class BlockingExecutor: TaskExecutor {
  static let shared = BlockingExecutor()

  private let queue = DispatchQueue(label: "downpipe.steps", attributes: .concurrent)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
