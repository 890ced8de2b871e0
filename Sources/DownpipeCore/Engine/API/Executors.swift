/// Where the tasks of a downloader run.
package struct Executors: Sendable {
  /// For the downloader's tasks; `nil` for the system's pool of threads.
  package var tasks: (any TaskExecutor)?
  /// For work that blocks its thread, such as hashing.
  package var blocking: any TaskExecutor

  /// The system's pool, and threads of their own for work that blocks.
  package init() { blocking = BlockingExecutor.shared }

  /// Runs everything on one executor.
  package init(_ executor: any TaskExecutor) {
    tasks = executor
    blocking = executor
  }

  /// Starts an unstructured task, which would not inherit the executor of the task that starts it.
  func start<Success: Sendable>(_ work: @escaping @Sendable () async -> Success) -> Task<Success, Never> {
    Task(executorPreference: tasks) { await work() }
  }

  /// Starts an unstructured task, which would not inherit the executor of the task that starts it.
  func start<Success: Sendable>(
    throwing work: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    Task(executorPreference: tasks) { try await work() }
  }
}
