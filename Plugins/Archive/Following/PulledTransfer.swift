#if Archive
  import DownpipeCore
  import DownpipePOSIX
  import Dispatch
  import Synchronization

  /// A reader that pulls its bytes from a transfer: libarchive reads, and does not take.
  ///
  /// The reader has a thread of its own, which is parked while no bytes arrive. It starts with the first bytes. Only a few
  /// transfers at a time have one; see ``places``.
  final class PulledTransfer: Sendable {
    /// Threads that may be parked in the process. Each one also holds the memory of a decoder.
    static let places = FollowerPlaces(4)

    typealias Work = @Sendable (FedBlocks) throws -> Void

    private struct State {
      var task: Task<Void, Never>?
      var place: FollowerPlaces.Place?
      /// The result of the reader; `nil` while it reads.
      var result: Result<Void, any Error>?
      var isOver = false
    }

    private let feed = BlockFeed()
    private let work: Work
    private let state: Mutex<State>
    private let hasEnded = DispatchSemaphore(value: 0)

    /// - Parameter work: Reads the whole source. It runs at most once.
    init(_ place: FollowerPlaces.Place, _ work: @escaping Work) {
      self.work = work
      state = Mutex(State(place: place))
    }

    /// Hands bytes to the reader.
    ///
    /// - Throws: The error with which the reader has ended.
    func put(_ bytes: RawSpan) throws {
      start()
      if !feed.put(bytes) { try state.withLock { $0.result }?.get() }
    }

    /// Tells the reader that there are no more bytes, and waits for its end.
    ///
    /// - Returns: `false` if it was cancelled before.
    /// - Throws: The error with which the reader has ended.
    func finish() throws -> Bool {
      guard !state.withLock({ $0.isOver }) else { return false }
      start()
      feed.complete()
      waitForEnd()
      try state.withLock { $0.result }?.get()
      return true
    }

    /// Ends the reader wherever it is, without waiting for its end.
    func interrupt() {
      state.withLock { $0.task }?.cancel()
      feed.end()
    }

    /// Ends the reader wherever it is, and waits for its end.
    func cancel() {
      let (task, wasOver) = state.withLock { state in
        defer { state.isOver = true }
        return (state.task, state.isOver)
      }
      guard !wasOver else { return }
      interrupt()
      if task != nil { waitForEnd() }
      state.withLock { $0.place = nil }
    }

    private func start() {
      state.withLock { state in
        guard state.task == nil, !state.isOver else { return }
        state.task = Task(executorPreference: OwnThread("downpipe unpack")) { [self] in
          let result = Result { try work(FedBlocks(feed)) }
          self.state.withLock { $0.result = result }
          feed.end()
          hasEnded.signal()
        }
      }
    }

    private func waitForEnd() {
      hasEnded.wait()
      // For the next one who asks.
      hasEnded.signal()
    }
  }

  /// Runs a task that never suspends on a thread of its own: the threads of a pool are not for waiting.
  private final class OwnThread: TaskExecutor {
    private let name: String

    init(_ name: String) { self.name = name }

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      do throws(DownloadError) {
        try SystemThread.start(name) { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
      } catch {
        // The process has no more threads: one of the system's has to wait.
        DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
      }
    }
  }

  extension PulledTransfer {
    /// Tells the reader that there are no more bytes, and waits for its end.
    ///
    /// - Returns: Whether it has ended well.
    /// - Throws: `CancellationError`.
    func finishedWithoutError() async throws -> Bool {
      try Task.checkCancellation()
      let isFinished = await withTaskCancellationHandler {
        (try? finish()) ?? false
      } onCancel: {
        interrupt()
      }
      try Task.checkCancellation()
      return isFinished
    }
  }
#endif
