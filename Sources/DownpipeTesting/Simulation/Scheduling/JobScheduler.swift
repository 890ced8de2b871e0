import Dispatch
import Foundation
import Synchronization

/// Runs the jobs of a simulation, one at a time and on one thread, in the order that a ``ScheduleChooser`` decides.
final class JobScheduler: Sendable {
  /// A piece of a task that can run now.
  struct Job: Sendable {
    enum Work: Sendable {
      case job(UnownedJob)
      /// A task that has yielded.
      case resume(CheckedContinuation<Void, Never>)
    }
    let work: Work
    let executor: SimulatedExecutor
    /// The number of the job's task, for strategies that need it; otherwise 0.
    let task: UInt64

    func run() {
      switch work {
      case .job(let job): job.runSynchronously(on: executor.asUnownedTaskExecutor())
      case .resume(let continuation): continuation.resume()
      }
    }
  }

  fileprivate struct State: Sendable {
    var ready: [Job] = []
    var chooser: ScheduleChooser
    /// Whether the caller of the simulation was cancelled.
    var isCancelled = false
    /// The call outside that is in progress.
    var callInProgress: Task<Void, Never>?
    /// The number of jobs that have run.
    var steps = 0
    /// All choices so far.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    /// The number of the task of the job that runs.
    var current: UInt64 = 0
    /// The tasks by the number that the runtime gives them, in the order in which they were seen.
    var tasks: [Substring: UInt64] = [:]
    /// Calls outside of the simulation that have not begun.
    var calls: [OutsideCall] = []
    /// Calls outside that have not returned.
    var outside = 0
    /// The jobs that came from another thread, although no call outside was waited for.
    var strays = 0
    var thread: UInt?
    var executors = 0
  }

  private let state: Mutex<State>
  private let changed = DispatchSemaphore(value: 0)

  init(_ chooser: ScheduleChooser) { state = Mutex(State(chooser: chooser)) }

  /// The number of jobs that have run.
  var steps: Int { state.withLock { $0.steps } }

  /// A number that stands for all choices so far.
  var hash: UInt64 { state.withLock { $0.hash } }

  /// The choices so far; see ``ScheduleChooser/choices``.
  var choices: [UInt16] { state.withLock { $0.chooser.choices } }

  /// The number of jobs that tasks outside of the simulation have made ready, so that their order is not the seed's.
  var strays: Int { state.withLock { $0.strays } }

  /// Returns a number for an executor.
  func makeNumber() -> Int {
    state.withLock { state in
      state.executors += 1
      return state.executors
    }
  }

  // MARK: Jobs

  func enqueue(_ job: UnownedJob, on executor: SimulatedExecutor) {
    let thread = Self.thread
    let isStray = state.withLock { state in
      let task = state.chooser.needsTasks ? state.number(of: job, executor) : 0
      state.ready.append(Job(work: .job(job), executor: executor, task: task))
      guard let own = state.thread, own != thread else { return false }
      if state.outside == 0 { state.strays += 1 }
      return true
    }
    if isStray { changed.signal() }
  }

  /// Runs the next job.
  /// - Returns: `false` if none can run. Calls outside are waited for before.
  func runOne() -> Bool {
    waitForCallsOutside()
    let job = state.withLock { state -> Job? in
      state.thread = Self.thread
      guard !state.ready.isEmpty else { return nil }
      let ready = state.ready
      let index = state.chooser.choose(among: ready.count) { ready[$0].task }
      state.steps += 1
      state.current = ready[index].task
      state.hash = (state.hash ^ UInt64(index)) &* 0x100_0000_01B3
      return state.ready.remove(at: index)
    }
    guard let job else { return false }
    job.run()
    return true
  }

  /// Runs the jobs of one executor until there are none, in order; they are no steps of the simulation.
  ///
  /// - Returns: `false` if there were more than `maximum`.
  func drain(_ executor: SimulatedExecutor, atMost maximum: Int = 100_000) -> Bool {
    for _ in 0..<maximum {
      waitForCallsOutside()
      let job = state.withLock { state -> Job? in
        state.thread = Self.thread
        guard let index = state.ready.firstIndex(where: { $0.executor === executor }) else { return nil }
        return state.ready.remove(at: index)
      }
      guard let job else { return true }
      job.run()
    }
    return false
  }

  // MARK: Cancellation

  /// Whether the caller of the simulation was cancelled: it ends after the present job.
  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Ends the simulation after the present job, and cancels the call outside that is in progress.
  func cancel() {
    let call = state.withLock { state in
      state.isCancelled = true
      return state.callInProgress
    }
    call?.cancel()
  }

  // MARK: Yielding

  /// Lets other jobs run before the caller goes on. Not `Task.yield()`, which leaves the executor.
  func yield(on executor: SimulatedExecutor) async {
    await withCheckedContinuation { continuation in
      state.withLock { $0.ready.append(Job(work: .resume(continuation), executor: executor, task: $0.current)) }
    }
  }

  // MARK: Calls outside

  /// Performs a call that the simulation does not order, such as one of a real database, while everything else waits: so
  /// the call is one step.
  ///
  /// - Parameter executor: The executor of the caller.
  func outside<Success: Sendable>(
    on executor: SimulatedExecutor, _ work: @escaping @Sendable () async throws -> Success
  ) async throws -> Success {
    let result = OutsideResult<Success>()
    await withCheckedContinuation { continuation in
      let call = OutsideCall(executor: executor, continuation: continuation) {
        do { result.set(.success(try await work())) } catch { result.set(.failure(error)) }
      }
      state.withLock { $0.calls.append(call) }
    }
    return try result.get()
  }

  /// Performs the calls outside that the last job has made, one after the other. Not while the job runs, which may go on
  /// after the call as the job of an actor: what it does must not depend on the speed of the call.
  private func waitForCallsOutside() {
    while let call = state.withLock({ $0.calls.isEmpty ? nil : $0.calls.removeFirst() }) {
      state.withLock { $0.outside += 1 }
      // Detached, because it must not run on the executor that waits for it. The simulation's thread owns it, and waits.
      let task = Task.detached {
        await call.perform()
        self.state.withLock { $0.outside -= 1 }
        self.changed.signal()
      }
      let isCancelled = state.withLock { state in
        state.callInProgress = task
        return state.isCancelled
      }
      if isCancelled { task.cancel() }
      while state.withLock({ $0.outside > 0 }) { changed.wait() }
      state.withLock { state in
        state.callInProgress = nil
        state.ready.append(Job(work: .resume(call.continuation), executor: call.executor, task: 0))
      }
    }
  }

  private static var thread: UInt {
    #if canImport(Darwin)
      UInt(bitPattern: pthread_self())
    #else
      UInt(pthread_self())
    #endif
  }
}

extension JobScheduler.State {
  /// The number of a job's task. The runtime's own numbers differ from run to run; jobs without one, which run actors, count
  /// as one task for each executor.
  fileprivate mutating func number(of job: UnownedJob, _ executor: SimulatedExecutor) -> UInt64 {
    let text = job.description
    let name = text.contains("id: nil") ? "executor \(executor.number)" : text.dropFirst(0)
    if let known = tasks[name] { return known }
    let number = UInt64(tasks.count + 1)
    tasks[name] = number
    return number
  }
}

/// A call outside of the simulation that has not begun.
private final class OutsideCall: Sendable {
  let executor: SimulatedExecutor
  let continuation: CheckedContinuation<Void, Never>
  private let work: Mutex<(@Sendable () async -> Void)?>

  init(
    executor: SimulatedExecutor, continuation: CheckedContinuation<Void, Never>,
    _ work: @escaping @Sendable () async -> Void
  ) {
    (self.executor, self.continuation) = (executor, continuation)
    self.work = Mutex(work)
  }

  /// Performs the work and lets go of it: an object that only the call still refers to must not end after the call, on a
  /// thread that the simulation does not know.
  func perform() async {
    let work = work.withLock { work in
      defer { work = nil }
      return work
    }
    await work?()
  }
}

/// The result of a call outside of the simulation.
private final class OutsideResult<Success: Sendable>: Sendable {
  private let state = Mutex<Result<Success, any Error>?>(nil)

  func set(_ result: Result<Success, any Error>) { state.withLock { $0 = result } }

  func get() throws -> Success {
    guard let result = state.withLock({ $0 }) else { throw CancellationError() }
    return try result.get()
  }
}

/// The executor of one simulated process.
final class SimulatedExecutor: TaskExecutor {
  /// A number that no other executor of the simulation has; addresses are used again.
  let number: Int
  private let scheduler: JobScheduler

  init(_ scheduler: JobScheduler) {
    self.scheduler = scheduler
    number = scheduler.makeNumber()
  }

  func enqueue(_ job: consuming ExecutorJob) { scheduler.enqueue(UnownedJob(job), on: self) }
}
