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
    _ work: @Sendable () async throws(Failure) -> Success
  ) async throws(Failure) -> Success {
    try await withTaskExecutorPreference(blocking ?? BlockingExecutor()) { () async throws(Failure) -> Success in
      try await Self.hopping(work)
    }
  }

  /// Without this, nothing would leave the thread of the caller: only a concurrent function runs where the preference says.
  @concurrent private static func hopping<Success: Sendable, Failure: Error>(
    _ work: @Sendable () async throws(Failure) -> Success
  ) async throws(Failure) -> Success {
    try await work()
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
