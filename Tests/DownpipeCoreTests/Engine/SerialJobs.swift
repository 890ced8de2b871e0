import Dispatch

/// Runs the jobs of tasks one after the other, in the order in which they become ready, so that a test sees in which order
/// tasks were resumed.
final class SerialJobs: TaskExecutor {
  private let queue = DispatchQueue(label: "SerialJobs")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// Returns when the jobs that are ready have run.
  func runReadyJobs() async {
    await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
  }
}
