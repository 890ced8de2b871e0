/// Where the tasks of a downloader run.
package struct Executors: Sendable {
  /// For the downloader's tasks; `nil` for the system's pool of threads.
  package var tasks: (any TaskExecutor)?
  /// For all work that may block; `nil` for threads of its own for each piece.
  private let blocking: (any TaskExecutor)?

  /// The system's pool, and threads of their own for work that blocks.
  package init() { blocking = nil }

  /// Runs everything on one executor.
  package init(_ executor: any TaskExecutor) {
    tasks = executor
    blocking = executor
  }

  /// Runs work that may block its thread, such as hashing, where nothing else waits for the thread.
  package func blocking<Success: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () async throws(Failure) -> Success
  ) async throws(Failure) -> Success {
    // A child task, because a task begins on its executor. A preference alone moves nothing: a call that needs no isolation
    // stays on the thread of its caller, and the compiler may leave out the hop even of a concurrent function.
    try await withTaskGroup(of: Result<Success, Failure>.self) { group in
      group.addTask(executorPreference: blocking ?? BlockingExecutor()) { await Result(catching: work) }
      guard let result = await group.next() else { preconditionFailure("a group with a task has a result") }
      return result
    }.get()
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
